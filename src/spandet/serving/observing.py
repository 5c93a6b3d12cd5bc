"""Around every request: it is counted, timed, logged where wanted, and answered safely."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spandet.serving.metrics import Metrics

_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_logger = logging.getLogger("spandet.requests")


class Observed:
    """An application under observation."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, paths: Collection[str]) -> None:
        """Observe an application.

        Args:
            app: What answers.
            metrics: Who counts.
            paths: The paths that are counted by name; anybody can make up others.
        """
        self._app = app
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and look at its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            seconds = time.monotonic() - began
            self._metrics.request(path, status, seconds)
            _logger.info(
                "%s %s %d %.1f ms",
                scope["method"],
                path,
                status,
                1000 * seconds,
                extra={
                    "method": scope["method"],
                    "path": path,
                    "status": status,
                    "milliseconds": round(1000 * seconds, 1),
                },
            )
