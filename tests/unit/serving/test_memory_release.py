"""Memory is given back: soon after requests, but not after each."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from spandet.serving import batching, memory_release
from spandet.serving.memory_release import Tidied
from support.serving_toys import Watched, until, with_client


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows whenever memory is given back."""
    given: list[None] = []
    monkeypatch.setattr(memory_release, "give_back", lambda: given.append(None))
    monkeypatch.setattr(memory_release, "_SECONDS", 0.2)
    return given


def test_many_requests_are_tidied_up_after_once(given: list[None]) -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError(scope["type"])

    async def story() -> None:
        app = Tidied(fails)
        for turn in (1, 2):
            for kind in ["http"] * 50 + ["lifespan"]:
                with pytest.raises(ValueError, match=kind):
                    await app({"type": kind}, None, None)  # type: ignore[arg-type]
            assert len(given) == turn - 1
            await until(lambda turn=turn: len(given) == turn)  # type: ignore[misc]
            await asyncio.sleep(0.3)
            assert len(given) == turn

    asyncio.run(story())


def test_a_service_tidies_up_after_what_it_refuses_too(given: list[None]) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        assert (await client.post("/v1/entities", json=[])).status_code == 422
        await until(lambda: len(given) == 1)

    with_client(story)


def test_every_batch_is_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[None] = []

    class Counting:
        def keep(self) -> None:
            kept.append(None)

    monkeypatch.setattr(batching, "Tidiness", Counting)
    recognizer = Watched()

    async def story(client: httpx.AsyncClient) -> None:
        for text in ("one", "two", "the poison"):
            await client.post("/v1/entities", json={"text": text})

    with_client(story, recognizer)
    assert len(kept) == len(recognizer.batches) >= 3
