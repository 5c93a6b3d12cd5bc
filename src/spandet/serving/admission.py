"""Which requests are answered at all: to a known host, and on a connection within the limits."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from spandet.serving.answers import AsciiJSON
from spandet.serving.hosts import AllowedHosts

SURPLUS = "surplus"
"""The key in the state of a request: its connection is over the limit of connections."""
_RETRY_SECONDS = "1"


class Admission:
    """An application that refuses requests before anything else is looked at."""

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts | None) -> None:
        """Guard an application.

        Args:
            app: What answers.
            hosts: What a Host header may say; None: anything.
        """
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        # Health probes must not fail because of load, and use any name; they learn nothing secret.
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
        else:
            await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope.get("state", {}).get(SURPLUS):
            detail = "too many connections are open, and none of them is idle; try again later"
            headers = {"Retry-After": _RETRY_SECONDS, "Connection": "close"}
            return AsciiJSON({"detail": detail}, status_code=503, headers=headers)
        if self._hosts is None:
            return None
        # Only HTTP/1.0 can leave Host out, which no browser speaks.
        for name, value in scope["headers"]:
            host = value.decode("latin-1")
            if name == b"host" and host not in self._hosts:
                detail = (
                    f"this service is not known as {host[:100]!a}; "
                    "start it with --allow-host to add a name"
                )
                return AsciiJSON({"detail": detail}, status_code=421)
        return None
