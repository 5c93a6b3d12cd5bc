"""Around every request: it is counted, timed, logged where wanted, and answered safely."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spandet.serving.answers import SAFE_HEADERS, AsciiJSON
from spandet.serving.metrics import Metrics
from spandet.serving.request_ids import REQUEST_ID, current_request_id, request_id_of

_logger = logging.getLogger("spandet.requests")
_errors = logging.getLogger("spandet.serving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A request and its answer, as the log has it. Texts are never logged."""

    method: str
    path: str
    status: int
    milliseconds: float
    client: str
    """The address of the client."""
    request_id: str

    def record(self, metrics: Metrics) -> None:
        """Count it, and log it where requests are logged."""
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
        status = None
        request_id = request_id_of(scope["headers"])
        current_request_id.set(request_id)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                headers[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            more = {"request_id": request_id}
            _errors.exception("an error in the service, request %s", request_id, extra=more)
            if status is not None:
                raise  # half an answer: only the server can end it, by closing the connection
            detail = "an error in the service; its log says more"
            await AsciiJSON({"detail": detail}, status_code=500)(scope, receive, watched)
        finally:
            Answered(
                method=scope["method"],
                path=scope["path"] if scope["path"] in self._paths else "other",
                status=status or 500,
                milliseconds=round(1000 * (time.monotonic() - began), 1),
                client=(scope.get("client") or ("-", 0))[0],
                request_id=request_id,
            ).record(self._metrics)
