"""What is checked before anything is done: who asks, how much, and whether it is JSON."""

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

from spandet.serving.errors import ClientGoneError, ServiceError, too_large, unusable
from spandet.serving.settings import ServiceSettings

_DRAINED_BYTES = 64 * 1024 * 1024
_DRAIN_SECONDS = 2.0
_MOST_KEYS = 32
"""More unknown keys are not named one by one."""


class LimitedRequest(Request):
    """A request whose body is never longer than it may be, in memory or in time."""

    async def body(self) -> bytes:
        """The whole body, if it is small enough and comes in time."""
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
                raise ClientGoneError from None
        return self._body

    async def json(self) -> Any:
        """The body as JSON, the way its standard defines it.

        Escaped lone surrogates are allowed: they are legal in JSON and in our texts.
        """
        if not hasattr(self, "_json"):
            value = self._parsed(await self.body())
            if isinstance(value, dict) and len(value) > _MOST_KEYS:
                raise unusable(f"an object with {len(value):,} keys, at most 4 are known")
            self._json = value
        return self._json

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body.decode("utf-8"), parse_constant=_refuse)
        except RecursionError:
            raise unusable("the JSON is nested too deeply") from None
        except UnicodeDecodeError as error:
            raise unusable(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
        except ValueError as error:  # not JSON, or a number with thousands of digits
            raise unusable(f"the body is not JSON: {ascii(str(error))[1:-1]}") from None

    async def _read(self, most: int) -> bytes:
        announced = self.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > most:
            await self._refuse_body(most)
        pieces, length = [], 0
        async for piece in self.stream():
            length += len(piece)
            if length > most:
                await self._refuse_body(most)
            pieces.append(piece)
        return b"".join(pieces)

    async def _refuse_body(self, most: int) -> NoReturn:
        """Say no, but listen for a while: who is still talking would not hear it."""
        if "expect" not in self.headers:
            try:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._drain()
            except TimeoutError:
                pass
        raise too_large(f"the request is longer than {most:,} bytes")

    async def _drain(self) -> None:
        heard = 0
        while heard < _DRAINED_BYTES:
            message = await self.receive()
            heard += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


class GuardedRoute(APIRoute):
    """A route that asks for the token, where there is one, before it reads anything."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler behind the checks."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            _check_token(request)
            limited = LimitedRequest(request.scope, request.receive)
            if request.method == "POST":
                _check_type(request)
                await limited.json()  # FastAPI, which keeps it, would make a 400 of any error here
            return await handle(limited)

        return guarded


def _check_token(request: Request) -> None:
    token: str | None = request.app.state.token
    if token is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not same:
        what = "a wrong one was sent" if given else "none was sent"
        raise ServiceError(
            f"this service needs a bearer token, and {what}",
            status=HTTPStatus.UNAUTHORIZED,
            headers={"WWW-Authenticate": "Bearer"},
        )


def _check_type(request: Request) -> None:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != "application/json":
        raise ServiceError(
            f"send application/json, not {ascii(sent) if sent else 'a body without a type'}",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
