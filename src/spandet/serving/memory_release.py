"""After requests: what they have left in memory is given back."""

from __future__ import annotations

import asyncio
import gc

from starlette.types import ASGIApp, Receive, Scope, Send

from spandet.inference.memory import give_back

_SECONDS = 5.0
"""How soon after a request, and how often at most: every time would make each request slower."""


class Tidied:
    """An application that returns to the memory it had, however much it was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and see to it that somebody tidies up after it."""
        try:
            await self._app(scope, receive, send)
        finally:
            if scope["type"] == "http" and self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_SECONDS, self._tidy_up)

    def _tidy_up(self) -> None:
        self._timer = None
        gc.collect()  # errors hold what led to them, in circles
        give_back()
