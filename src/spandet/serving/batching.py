"""Batching: requests that arrive together share a batch, and one thread runs the model.

Everything except the model runs on the event loop, so that no locks are needed. A batch takes one
text, or one part of a long text, from each request in turn, so that a short text waits for one or
two batches, however many texts the other requests have.
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

from spandet.inference.memory import MemoryGuard
from spandet.inference.recognizer import Recognizer
from spandet.serving.errors import (
    BrokenTextError,
    QueueFullError,
    StoppingError,
    TooSlowError,
    too_large,
)
from spandet.serving.metrics import Metrics
from spandet.serving.responses import current_request_id
from spandet.serving.settings import ServiceSettings
from spandet.serving.work import TextPart, Work, split_text
from spandet.text import Document

_logger = logging.getLogger("spandet.serving")

_MAX_RETRY_SECONDS = 60
_SMOOTHING = 0.8
"""Weight of the previous throughput in its moving average."""


@dataclass(slots=True)
class _Item:
    """A part of a text, with the index of the text in its request."""

    job: _Job
    text: int
    part: TextPart
    result: Any = None


class _Job:
    """One request: its text parts in order, and the future of its result."""

    def __init__(
        self, work: Work, texts: Sequence[str], parts: Sequence[Sequence[TextPart]]
    ) -> None:
        self.work = work
        self.texts = texts
        self.request_id = current_request_id.get()
        self.items = [[_Item(self, i, part) for part in own] for i, own in enumerate(parts)]
        self.waiting = deque(item for own in self.items for item in own)
        self.missing = len(self.waiting)
        self.result: asyncio.Future[list[dict[str, Any]]] = asyncio.Future()
        if not self.missing:
            self.result.set_result(self._joined())

    def finish(self, item: _Item, result: Any) -> None:
        """Store the result of a part; the last one completes the job."""
        item.result = result
        self.missing -= 1
        if not self.missing and not self.result.done():
            self.result.set_result(self._joined())

    def fail(self, error: Exception) -> None:
        """Complete the job with an error."""
        if not self.result.done():
            self.result.set_exception(error)

    def _joined(self) -> list[dict[str, Any]]:
        pairs = ([(item.part, item.result) for item in own] for own in self.items)
        return [self.work.join(text, own) for text, own in zip(self.texts, pairs, strict=True)]


class _Queue:
    """Size of the queue and the current batch, and the measured throughput."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self.texts = 0
        self.characters = 0
        self._throughput: float | None = None

    @contextmanager
    def reserved(self, texts: Sequence[str]) -> Iterator[None]:
        """Reserve room for these texts.

        Raises:
            ServiceError: They exceed the size of the queue.
            QueueFullError: There is no room for them now.
        """
        characters = sum(map(len, texts))
        self._check(len(texts), characters)
        self._add(len(texts), characters)
        try:
            yield
        finally:
            self._add(-len(texts), -characters)

    def measure(self, characters: int, seconds: float) -> None:
        """Update the moving average of the throughput with a batch."""
        new = max(1, characters) / max(seconds, 1e-6)
        old = new if self._throughput is None else self._throughput
        self._throughput = _SMOOTHING * old + (1 - _SMOOTHING) * new

    @property
    def wait(self) -> int:
        """Estimated seconds until the queue is empty."""
        seconds = self.characters / self._throughput if self._throughput else 1.0
        return min(_MAX_RETRY_SECONDS, max(1, math.ceil(seconds)))

    def _check(self, texts: int, characters: int) -> None:
        most_texts, most = self._settings.max_queue_texts, self._settings.max_queue_chars
        if texts > most_texts or characters > most:
            raise too_large(
                f"{texts:,} texts with {characters:,} characters in one request, at most "
                f"{most_texts:,} texts with {most:,} characters are accepted"
            )
        if self.texts + texts > most_texts or self.characters + characters > most:
            raise QueueFullError(
                f"the queue is full: {self.texts:,} texts with {self.characters:,} characters; "
                f"try again in {self.wait} s",
                retry_after=self.wait,
            )

    def _add(self, texts: int, characters: int) -> None:
        self.texts += texts
        self.characters += characters
        self._metrics.queue(self.texts, self.characters)


class Batcher:
    """Runs texts through the model in batches, for one event loop."""

    def __init__(self, recognizer: Recognizer, settings: ServiceSettings, metrics: Metrics) -> None:
        self._recognizer = recognizer
        self._settings = settings
        self._metrics = metrics
        self._queue = _Queue(settings, metrics)
        self._jobs: deque[_Job] = deque()
        self._open: set[_Job] = set()
        self._worker: asyncio.Task[None] | None = None
        self.open()

    def open(self) -> None:
        """Start to accept work; also after `close`."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spandet-model")
        self._memory = MemoryGuard()
        self._stopping = False

    async def run(self, work: Work, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The result of each text, in order; if cancelled, what has not begun is dropped.

        Raises:
            ServiceError: The queue is full, the time limit is exceeded, or the model failed.
        """
        if self._stopping:
            raise StoppingError("the service is stopping")
        with self._queue.reserved(texts):
            began = time.monotonic()
            job: _Job | None = None
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    job = _Job(work, texts, [await self._parts(text) for text in texts])
                    return await self._result(job)
            except TimeoutError:
                raise TooSlowError(_progress(job, time.monotonic() - began)) from None

    def stop(self, seconds: float) -> None:
        """Accept no more work, and fail what is not finished after some seconds."""
        if not self._stopping:
            self._stopping = True
            asyncio.get_running_loop().call_later(seconds, self._fail_open_jobs)

    def close(self) -> None:
        """Fail what is not finished, and end the thread."""
        self._stopping = True
        self._fail_open_jobs()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _fail_open_jobs(self) -> None:
        for job in list(self._open):
            job.fail(StoppingError("the service stopped before the request was finished"))

    async def _parts(self, text: str) -> list[TextPart]:
        max_chars = self._settings.part_chars
        sizes = self._recognizer.context_sizes
        split = partial(split_text, text, max_chars=max_chars, **sizes)
        if len(text) <= max_chars:
            return split()
        # Segmentation takes time and must not block the event loop.
        return await asyncio.get_running_loop().run_in_executor(self._thread, split)

    async def _result(self, job: _Job) -> list[dict[str, Any]]:
        self._open.add(job)
        if job.waiting:
            self._jobs.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return await job.result
        finally:
            self._open.discard(job)
            if job in self._jobs:
                self._jobs.remove(job)

    async def _work(self) -> None:
        """Process batches until no job is left."""
        while self._jobs:
            await asyncio.sleep(self._settings.gather_seconds)
            groups: dict[Work, list[_Item]] = {}
            for item in self._next_batch():
                groups.setdefault(item.job.work, []).append(item)
            for work, items in groups.items():
                await self._process(work, items)

    def _next_batch(self) -> list[_Item]:
        """Take one part of each request in turn until the batch is full."""
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

    async def _process(self, work: Work, items: list[_Item]) -> None:
        """Run a batch; if it fails, run each part alone, so that only the failing part is lost."""
        items = [item for item in items if not item.job.result.done()]
        if not items:
            return
        outcome = await self._outcome(work, items)
        if not isinstance(outcome, BaseException):
            for item, result in zip(items, outcome, strict=True):
                item.job.finish(item, result)
        elif len(items) > 1:
            for item in items:
                await self._process(work, [item])
        else:
            self._fail(items[0], outcome)

    async def _outcome(self, work: Work, items: Sequence[_Item]) -> list[Any] | BaseException:
        """The results of a batch, or the exception of the model."""
        documents = [item.part.document for item in items]
        characters = sum(len(document.text) for document in documents)
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        running = loop.run_in_executor(self._thread, self._run, work, documents)
        outcome: list[Any] | BaseException
        (outcome,) = await asyncio.gather(running, return_exceptions=True)
        seconds = time.monotonic() - began
        self._queue.measure(characters, seconds)
        self._metrics.batch(len(items), characters, seconds)
        return outcome

    def _run(self, work: Work, documents: Sequence[Document]) -> list[Any]:
        """Run the model; called on its thread."""
        try:
            return work.run(self._recognizer, documents)
        finally:
            self._memory.check()

    def _fail(self, item: _Item, error: BaseException) -> None:
        """Log an exception of the model, and fail the request."""
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
        return f"not finished within {seconds:.1f} s: the texts were not yet split into sentences"
    parts = sum(map(len, job.items))
    begun = parts - len(job.waiting)
    done = parts - job.missing
    return (
        f"not finished within {seconds:.1f} s: of {parts} parts {done} were done, "
        f"{begun - done} had begun, and the rest was dropped; send fewer texts, or try again later"
    )
