"""Checks before a request is handled: bearer token, content type, body size and valid JSON."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, NoReturn

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from spandet.serving.errors import (
    ClientDisconnectedError,
    ServiceError,
    too_large,
    unprocessable,
)
from spandet.serving.settings import ServiceSettings

_DRAINED_BYTES = 64 * 1024 * 1024
_DRAIN_SECONDS = 2.0
_MAX_KEYS = 32
"""An object with more keys is refused without an error per key."""


class LimitedRequest(Request):
    """A request with limits on the size of its body and on the time to receive it."""

    async def body(self) -> bytes:
        """The body.

        Raises:
            ServiceError: It is too long, or does not arrive in time.
        """
        if not hasattr(self, "_body"):
            settings: ServiceSettings = self.app.state.settings
            try:
                async with asyncio.timeout(settings.body_seconds):
                    self._body = await self._read(settings.max_body_bytes)
            except TimeoutError:
                detail = f"the request did not arrive within {settings.body_seconds:g} s"
                raise ServiceError(
                    detail, status=HTTPStatus.REQUEST_TIMEOUT, headers={"Connection": "close"}
                ) from None
            except ClientDisconnect:
                raise ClientDisconnectedError from None
        return self._body

    async def json(self) -> Any:
        """The body as standard JSON, without NaN and infinities.

        Escaped lone surrogates are allowed, as in JSON and in documents.

        Raises:
            ServiceError: It is not JSON, or has too many keys.
        """
        if not hasattr(self, "_json"):
            value = self._parsed(await self.body())
            if isinstance(value, dict) and len(value) > _MAX_KEYS:
                raise unprocessable(f"an object with {len(value):,} keys, at most 4 are known")
            self._json = value
        return self._json

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body.decode("utf-8"), parse_constant=_refuse)
        except RecursionError:
            raise unprocessable("the JSON is nested too deeply") from None
        except UnicodeDecodeError as error:
            where = f"{error.reason} at byte {error.start}"
            raise unprocessable(f"the body is not UTF-8: {where}") from None
        except ValueError as error:  # not JSON, or a number with thousands of digits
            raise unprocessable(f"the body is not JSON: {ascii(str(error))[1:-1]}") from None

    async def _read(self, max_bytes: int) -> bytes:
        declared = self.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > max_bytes:
            await self._refuse_body(max_bytes)
        chunks, length = [], 0
        async for chunk in self.stream():
            length += len(chunk)
            if length > max_bytes:
                await self._refuse_body(max_bytes)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _refuse_body(self, max_bytes: int) -> NoReturn:
        """Refuse the body, but read on for a while first.

        Many clients read the response only after they have sent the whole request.
        """
        if "expect" not in self.headers:
            try:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._drain()
            except TimeoutError:
                pass
        raise too_large(f"the request is longer than {max_bytes:,} bytes")

    async def _drain(self) -> None:
        received = 0
        while received < _DRAINED_BYTES:
            message = await self.receive()
            received += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


class GuardedRoute(APIRoute):
    """A route that checks the token, if the service has one, before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route, after the checks."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            _check_token(request)
            limited = LimitedRequest(request.scope, request.receive)
            if request.method == "POST":
                _check_type(request)
                await limited.json()  # cached; an error inside FastAPI would become a 400
            return await handle(limited)

        return guarded


def _check_token(request: Request) -> None:
    token: str | None = request.app.state.token
    if token is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not same:
        what = "the token is wrong" if given else "none was sent"
        raise ServiceError(
            f"this service requires a bearer token: {what}",
            status=HTTPStatus.UNAUTHORIZED,
            headers={"WWW-Authenticate": "Bearer"},
        )


def _check_type(request: Request) -> None:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != "application/json":
        raise ServiceError(
            f"expected the content type application/json, got {ascii(sent) if sent else 'none'}",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
