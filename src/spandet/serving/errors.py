"""Errors of requests, each with its HTTP status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any


class ServiceError(Exception):
    """A request that fails: status, headers and body of the response."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(
        self,
        detail: str,
        *,
        status: HTTPStatus | None = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status or self.status
        self.headers = headers or {}
        self.body = {"detail": detail, **more}


class QueueFullError(ServiceError):
    """The queue has no room for the request now."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, detail: str, *, retry_after: int) -> None:
        headers = {"Retry-After": str(retry_after)}
        super().__init__(detail, headers=headers, retry_after=retry_after)


class TooSlowError(ServiceError):
    """The request exceeded its time limit."""

    status = HTTPStatus.GATEWAY_TIMEOUT


class StoppingError(ServiceError):
    """The service is shutting down."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"Retry-After": "1", "Connection": "close"})


class BrokenTextError(ServiceError):
    """The model raised an exception on a text; the log has the traceback under the same id."""

    def __init__(self, number: int, incident: str) -> None:
        detail = f"the model failed on text {number}; see the service's log, id {incident}"
        super().__init__(detail, id=incident, text=number)


class ClientDisconnectedError(ServiceError):
    """The client disconnected before its response."""

    def __init__(self) -> None:
        super().__init__("the client has disconnected")


def too_large(detail: str) -> ServiceError:
    """An error for a request that exceeds a limit (413)."""
    return ServiceError(detail, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def unprocessable(detail: str, **more: Any) -> ServiceError:
    """An error for a request with invalid content (422)."""
    return ServiceError(detail, status=HTTPStatus.UNPROCESSABLE_ENTITY, **more)
