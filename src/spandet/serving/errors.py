"""What can go wrong with a request. Each knows the status that tells the client."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any


class ServiceError(Exception):
    """A request that gets no entities, and why."""

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
    """Too much is waiting already."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, detail: str, *, retry_after: int) -> None:
        headers = {"Retry-After": str(retry_after)}
        super().__init__(detail, headers=headers, retry_after=retry_after)


class TooSlowError(ServiceError):
    """The answer did not come in time."""

    status = HTTPStatus.GATEWAY_TIMEOUT


class StoppingError(ServiceError):
    """The service is on its way out."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"Retry-After": "1", "Connection": "close"})


class BrokenTextError(ServiceError):
    """The model failed on a text; the log has more under the same id."""

    def __init__(self, number: int, incident: str) -> None:
        detail = f"the model failed on text {number}; the log says more under {incident}"
        super().__init__(detail, id=incident, text=number)


class ClientGoneError(ServiceError):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__("the client has gone")


def too_large(detail: str) -> ServiceError:
    """More than the service takes."""
    return ServiceError(detail, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def unusable(detail: str, **more: Any) -> ServiceError:
    """Not what the service understands."""
    return ServiceError(detail, status=HTTPStatus.UNPROCESSABLE_ENTITY, **more)
