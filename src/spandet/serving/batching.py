"""Requests that arrive together share a batch, and one thread does the work.

Everything here but the work itself happens on the event loop, so that nothing needs a lock.
Requests take turns: each gives one text, or one part of a long text, and then the next request is
asked, so that a short text waits for a batch or two, however much the others have sent.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from spandet.inference.memory import Tidiness
from spandet.inference.recognizer import Recognizer
from spandet.serving.errors import (
    BrokenTextError,
    QueueFullError,
    StoppingError,
    TooSlowError,
    too_large,
)
from spandet.serving.metrics import Metrics
from spandet.serving.request_ids import current_request_id
from spandet.serving.settings import ServiceSettings
from spandet.serving.work import Part, Work, parts_of
from spandet.text import Document

_logger = logging.getLogger("spandet.serving")

_LONGEST_WAIT = 60
_MEMORY = 0.8
"""How much of the measured pace a new batch leaves as it was."""


@dataclass(slots=True)
class _Item:
    """A part of a text, and which of its request."""

    job: _Job
    text: int
    part: Part
    result: Any = None


class _Job:
    """One request: its parts in order, and the answer that somebody waits for."""

    def __init__(self, work: Work, texts: Sequence[str], parts: Sequence[Sequence[Part]]) -> None:
        self.work = work
        self.texts = texts
        self.request_id = current_request_id.get()
        self.items = [[_Item(self, i, part) for part in own] for i, own in enumerate(parts)]
        self.waiting = deque(item for own in self.items for item in own)
        self.missing = len(self.waiting)
        self.answer: asyncio.Future[list[dict[str, Any]]] = asyncio.Future()
        if not self.missing:
            self.answer.set_result(self._joined())

    def finish(self, item: _Item, result: Any) -> None:
        """Keep what came of a part; the last one completes the answer."""
        item.result = result
        self.missing -= 1
        if not self.missing and not self.answer.done():
            self.answer.set_result(self._joined())

    def fail(self, error: Exception) -> None:
        """There will be no answer."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def _joined(self) -> list[dict[str, Any]]:
        pairs = ([(item.part, item.result) for item in own] for own in self.items)
        return [self.work.join(text, own) for text, own in zip(self.texts, pairs, strict=True)]


class _Room:
    """How much is waiting or being worked on, and how fast it goes away."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self.texts = 0
        self.characters = 0
        self._pace: float | None = None

    @contextmanager
    def taken(self, texts: Sequence[str]) -> Iterator[None]:
        """Hold room for these texts.

        Raises:
            ServiceError: they would never fit.
            QueueFullError: they do not fit now.
        """
        characters = sum(map(len, texts))
        self._check(len(texts), characters)
        self._add(len(texts), characters)
        try:
            yield
        finally:
            self._add(-len(texts), -characters)

    def measure(self, characters: int, seconds: float) -> None:
        """Learn from a batch how fast the work goes."""
        pace = max(1, characters) / max(seconds, 1e-6)
        self._pace = pace if self._pace is None else _MEMORY * self._pace + (1 - _MEMORY) * pace

    @property
    def wait(self) -> int:
        """In how many seconds what is here will be done, at the measured pace."""
        seconds = self.characters / self._pace if self._pace else 1.0
        return min(_LONGEST_WAIT, max(1, math.ceil(seconds)))

    def _check(self, texts: int, characters: int) -> None:
        most_texts, most = self._settings.max_queue_texts, self._settings.max_queue_chars
        if texts > most_texts or characters > most:
            raise too_large(
                f"{texts:,} texts with {characters:,} characters in one request, at most "
                f"{most_texts:,} texts with {most:,} characters are accepted"
            )
        if self.texts + texts > most_texts or self.characters + characters > most:
            raise QueueFullError(
                f"{self.texts:,} texts with {self.characters:,} characters are waiting; "
                f"try again in {self.wait} s",
                retry_after=self.wait,
            )

    def _add(self, texts: int, characters: int) -> None:
        self.texts += texts
        self.characters += characters
        self._metrics.queue(self.texts, self.characters)


class Batcher:
    """Brings texts to the model and answers back, for one event loop."""

    def __init__(self, recognizer: Recognizer, settings: ServiceSettings, metrics: Metrics) -> None:
        self._recognizer = recognizer
        self._settings = settings
        self._metrics = metrics
        self._room = _Room(settings, metrics)
        self._jobs: deque[_Job] = deque()
        self._open: set[_Job] = set()
        self._pump: asyncio.Task[None] | None = None
        self.open()

    def open(self) -> None:
        """Accept work, after `close` again too."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spandet-model")
        self._tidiness = Tidiness()
        self._stopping = False

    async def run(self, work: Work, texts: Sequence[str]) -> list[dict[str, Any]]:
        """What comes of each text, in order. Cancel it, and what has not begun is dropped.

        Raises:
            ServiceError: there is no room, no time, or an error in the model.
        """
        if self._stopping:
            raise StoppingError("the service is stopping")
        with self._room.taken(texts):
            began = time.monotonic()
            job: _Job | None = None
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    job = _Job(work, texts, [await self._parts(text) for text in texts])
                    return await self._answer(job)
            except TimeoutError:
                raise TooSlowError(_progress(job, time.monotonic() - began)) from None

    def stop(self, seconds: float) -> None:
        """Accept nothing more; what has no answer in so many seconds will get none."""
        if not self._stopping:
            self._stopping = True
            asyncio.get_running_loop().call_later(seconds, self._give_up)

    def close(self) -> None:
        """Let the thread go."""
        self._stopping = True
        self._give_up()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _give_up(self) -> None:
        for job in list(self._open):
            job.fail(StoppingError("the service stopped before this was done"))

    async def _parts(self, text: str) -> list[Part]:
        longest = self._settings.part_chars
        encoder = self._recognizer.encoder
        cut = partial(
            parts_of,
            text,
            longest=longest,
            context_words=encoder.context_words,
            passage_words=encoder.passage_words,
            neighbour_sentences=encoder.neighbour_sentences,
        )
        if len(text) <= longest:
            return cut()
        # Sentences take time to find; the thread that has it must not be the one that listens.
        return await asyncio.get_running_loop().run_in_executor(self._thread, cut)

    async def _answer(self, job: _Job) -> list[dict[str, Any]]:
        self._open.add(job)
        if job.waiting:
            self._jobs.append(job)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._work_off())
        try:
            return await job.answer
        finally:
            self._open.discard(job)
            if job in self._jobs:
                self._jobs.remove(job)

    async def _work_off(self) -> None:
        while self._jobs:
            await asyncio.sleep(self._settings.gather_seconds)
            groups: dict[Work, list[_Item]] = {}
            for item in self._next_batch():
                groups.setdefault(item.job.work, []).append(item)
            for work, items in groups.items():
                await self._do(work, items)

    def _next_batch(self) -> list[_Item]:
        """One part of each request in turn, until the batch is full."""
        batch: list[_Item] = []
        characters = 0
        full = self._settings.max_batch_chars
        while self._jobs and characters < full and len(batch) < self._settings.max_batch_texts:
            job = self._jobs.popleft()
            batch.append(job.waiting.popleft())
            characters += len(batch[-1].part.document.text)
            if job.waiting:
                self._jobs.append(job)
        return batch

    async def _do(self, work: Work, items: list[_Item]) -> None:
        """Work on a batch; where that fails, on each part alone, to find the guilty one."""
        items = [item for item in items if not item.job.answer.done()]
        if not items:
            return
        outcome = await self._outcome(work, items)
        if not isinstance(outcome, BaseException):
            for item, result in zip(items, outcome, strict=True):
                item.job.finish(item, result)
        elif len(items) > 1:
            for item in items:
                await self._do(work, [item])
        else:
            self._report(items[0], outcome)

    async def _outcome(self, work: Work, items: Sequence[_Item]) -> list[Any] | BaseException:
        documents = [item.part.document for item in items]
        characters = sum(len(document.text) for document in documents)
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        running = loop.run_in_executor(self._thread, self._run, work, documents)
        outcome: list[Any] | BaseException
        (outcome,) = await asyncio.gather(running, return_exceptions=True)
        seconds = time.monotonic() - began
        self._room.measure(characters, seconds)
        self._metrics.batch(len(items), characters, seconds)
        return outcome

    def _run(self, work: Work, documents: Sequence[Document]) -> list[Any]:
        """The work itself, on the thread of the model."""
        try:
            return work.run(self._recognizer, documents)
        finally:
            self._tidiness.keep()

    def _report(self, item: _Item, error: BaseException) -> None:
        incident = uuid4().hex[:12]
        length = len(item.part.document.text)
        request_id = item.job.request_id
        _logger.error(
            "%s: the model failed on %d characters, request %s",
            incident,
            length,
            request_id,
            exc_info=error,
            extra={"request_id": request_id},
        )
        item.job.fail(BrokenTextError(item.text, incident))


def _progress(job: _Job | None, seconds: float) -> str:
    if job is None:
        return f"no answer within {seconds:.1f} s: the texts were not even cut into sentences"
    parts = sum(map(len, job.items))
    begun = parts - len(job.waiting)
    done = parts - job.missing
    return (
        f"no answer within {seconds:.1f} s: of {parts} parts {done} were done, "
        f"{begun - done} had begun, and the rest was dropped; send less at once, or try later"
    )
