"""ASGI middleware around every request: log and metrics, refusal of hosts, release of memory."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spandet.inference.memory import release_memory
from spandet.serving.hosts import AllowedHosts
from spandet.serving.metrics import Metrics
from spandet.serving.responses import (
    REQUEST_ID,
    SAFE_HEADERS,
    AsciiJSON,
    current_request_id,
    request_id_of,
)

SURPLUS = "surplus"
"""Key in the state of a request: its connection exceeds the limit of connections."""

_RETRY_SECONDS = "1"
_RELEASE_SECONDS = 5.0
"""Delay of a memory release after a request; releasing after every request would be slow."""

_logger = logging.getLogger("spandet.requests")
_errors = logging.getLogger("spandet.serving")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """The log record of a request and its response, without texts."""

    method: str
    path: str
    status: int
    milliseconds: float
    client: str
    """IP address of the client."""
    request_id: str

    def write(self, metrics: Metrics) -> None:
        """Count the request, and log it if request logging is enabled."""
        metrics.request(self.path, self.status, self.milliseconds / 1000)
        _logger.info(
            "%s %s %d %.1f ms, client %s, request %s",
            self.method,
            self.path,
            self.status,
            self.milliseconds,
            self.client,
            self.request_id,
            extra=asdict(self),
        )


class RequestLog:
    """Count, time and log requests; add default headers; turn exceptions into a 500."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, paths: Collection[str]) -> None:
        """Wrap an application.

        Args:
            app: The application.
            metrics: Metrics to update.
            paths: Paths that are counted by name; all others are counted as "other", so that
                clients cannot create metrics.
        """
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, then record its status and time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = None
        request_id = request_id_of(scope["headers"])
        current_request_id.set(request_id)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                headers[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            more = {"request_id": request_id}
            _errors.exception("internal error, request %s", request_id, extra=more)
            if status is not None:
                raise  # the response has begun: the server can only close the connection
            detail = f"internal error; see the service's log, request {request_id}"
            response = AsciiJSON({"detail": detail}, status_code=500)
            await response(scope, receive, send_with_headers)
        finally:
            RequestRecord(
                method=scope["method"],
                path=scope["path"] if scope["path"] in self._paths else "other",
                status=status or 500,
                milliseconds=round(1000 * (time.monotonic() - began), 1),
                client=(scope.get("client") or ("-", 0))[0],
                request_id=request_id,
            ).write(self._metrics)


class Admission:
    """Refuse requests for unknown hosts, and on connections that exceed the limit."""

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts | None) -> None:
        """Wrap an application.

        Args:
            app: The application.
            hosts: Allowed values of the Host header; None: any.
        """
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or refuse a request."""
        # Health probes must not fail because of load, and may use any name; they reveal nothing.
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
        else:
            await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope.get("state", {}).get(SURPLUS):
            detail = "too many open connections, and none of them is idle; try again later"
            headers = {"Retry-After": _RETRY_SECONDS, "Connection": "close"}
            return AsciiJSON({"detail": detail}, status_code=503, headers=headers)
        if self._hosts is None:
            return None
        # Only HTTP/1.0 allows a request without Host, and no browser sends HTTP/1.0.
        for name, value in scope["headers"]:
            host = value.decode("latin-1")
            if name == b"host" and host not in self._hosts:
                detail = (
                    f"the host {host[:100]!a} is not allowed; "
                    "start the service with --allow-host to allow it"
                )
                return AsciiJSON({"detail": detail}, status_code=421)
        return None


class MemoryRelease:
    """Return freed memory to the operating system, a few seconds after requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and schedule a release unless one is scheduled."""
        try:
            await self._app(scope, receive, send)
        finally:
            if scope["type"] == "http" and self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_RELEASE_SECONDS, self._release)

    def _release(self) -> None:
        self._timer = None
        gc.collect()  # exceptions and their tracebacks are reference cycles
        release_memory()
