"""Memory is returned to the operating system soon after requests, but not after each."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from spandet.serving import batching, middleware
from spandet.serving.middleware import MemoryRelease
from support.serving_toys import RecordingRecognizer, until, with_client


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list that grows with every release of memory."""
    released: list[None] = []
    monkeypatch.setattr(middleware, "release_memory", lambda: released.append(None))
    monkeypatch.setattr(middleware, "_RELEASE_SECONDS", 0.2)
    return released


def test_memory_is_released_once_after_many_requests(released: list[None]) -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError(scope["type"])

    async def scenario() -> None:
        app = MemoryRelease(fails)
        for turn in (1, 2):
            for kind in ["http"] * 50 + ["lifespan"]:
                with pytest.raises(ValueError, match=kind):
                    await app({"type": kind}, None, None)  # type: ignore[arg-type]
            assert len(released) == turn - 1
            await until(lambda turn=turn: len(released) == turn)  # type: ignore[misc]
            await asyncio.sleep(0.3)
            assert len(released) == turn

    asyncio.run(scenario())


def test_memory_is_released_after_refused_requests_too(released: list[None]) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert (await client.post("/v1/entities", json=[])).status_code == 422
        await until(lambda: len(released) == 1)

    with_client(scenario)


def test_memory_is_checked_after_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[None] = []

    class Counting:
        def check(self) -> None:
            checked.append(None)

    monkeypatch.setattr(batching, "MemoryGuard", Counting)
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        for text in ("one", "two", "the poison"):
            await client.post("/v1/entities", json={"text": text})

    with_client(scenario, recognizer)
    assert len(checked) == len(recognizer.batches) >= 3
