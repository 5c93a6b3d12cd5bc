"""Services for tests: an untrained recognizer that finds entities everywhere, and clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import httpx
import torch
import uvicorn
from fastapi import FastAPI

from spandet import generate
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.serving import ServiceSettings, create_app
from spandet.serving.server import configuration, listen, networks
from spandet.text import Document

T = TypeVar("T")

_SETTINGS = {
    "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
    "detector": {"name": "locate-and-label", "filter_threshold": 0.0},
    "decoding": {"threshold": 0.3, "crossing": "keep"},
}


@lru_cache
def permissive_recognizer() -> Recognizer:
    """An untrained recognizer with a low threshold: it finds entities in every sentence."""
    torch.manual_seed(1)
    made = Recognizer.build(ModelSettings.resolve(_SETTINGS), generate(30, seed=2))
    with torch.no_grad():
        for parameter in made.modules().parameters():
            parameter.normal_(std=0.4)
    return made


class RecordingRecognizer(Recognizer):
    """A recognizer that records its batches, can be blocked, and fails on texts with "poison"."""

    def __init__(self) -> None:
        self.__dict__.update(permissive_recognizer().__dict__)
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.free = threading.Event()
        self.free.set()
        self.busy = threading.Event()
        self.poison = "poison"

    def predict(self, documents: Iterable[Any], *options: Any, **more: Any) -> Iterator[Document]:
        batch = list(documents)
        self.batches.append([document.text for document in batch])
        self.threads.add(threading.current_thread().name)
        self.busy.set()
        assert self.free.wait(30)
        if any(self.poison in document.text for document in batch):
            raise RuntimeError("poisoned text")
        return super().predict(batch, *options, **more)

    @property
    def seen(self) -> list[str]:
        """All texts of all batches."""
        return [text for batch in self.batches for text in batch]


def sentences(count: int, *, seed: int = 3) -> list[str]:
    """Different short texts."""
    found: dict[str, None] = {}
    for document in generate(2 * count, seed=seed):
        for sentence in document.sentences:
            assert sentence.span is not None
            found[document.text[sentence.span.start : sentence.span.end]] = None
    return list(found)[:count]


def entity_dicts(document: Document) -> list[dict[str, Any]]:
    """The entities of a document as the service returns them."""
    result = []
    for entity in document.entities:
        span = entity.span
        row = {"start": span.start, "end": span.end, "label": entity.label, "score": entity.score}
        result.append({**row, "text": document.text[span.start : span.end]})
    return result


@asynccontextmanager
async def client_of(app: FastAPI, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls the application without a socket."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", **options) as client,
    ):
        yield client


def with_client(
    scenario: Callable[[httpx.AsyncClient], Coroutine[Any, Any, T]],
    recognizer: Recognizer | None = None,
    *,
    token: str | None = None,
    headers: dict[str, str] | None = None,
    **settings: Any,
) -> T:
    """Run a coroutine with a client of a service with these settings."""

    async def run() -> T:
        made = ServiceSettings(**settings)
        app = create_app(recognizer or permissive_recognizer(), made, token=token)
        async with client_of(app, headers=headers) as client:
            return await scenario(client)

    return asyncio.run(run())


@contextmanager
def served(
    recognizer: Recognizer | None = None, *, proxies: Sequence[str] = (), **settings: Any
) -> Iterator[int]:
    """Run a service with these settings in a thread; yields its port."""
    app = create_app(recognizer or permissive_recognizer(), ServiceSettings(**settings))
    server = uvicorn.Server(configuration(app, proxies=networks(proxies)))
    with listen("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            yield port
        finally:
            server.should_exit = True
            thread.join(timeout=30)


async def until(holds: Callable[[], bool], *, seconds: float = 20) -> None:
    """Wait for a condition that other tasks or threads fulfil."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


def metric(exposition: str, name: str) -> float:
    """The value of a metric without labels."""
    lines = [line for line in exposition.splitlines() if line.startswith(f"{name} ")]
    assert len(lines) == 1, (name, exposition)
    return float(lines[0].split()[-1])
