"""Prediction window by window, with documents that cannot be predicted reported or skipped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from spandet.errors import FormatError, SpandetError, UsageError
from spandet.inference.batching import windows
from spandet.text import Document

Predict = Callable[[Sequence[Document]], Iterable[Document]]
_OF_ONE_DOCUMENT = (FormatError, UsageError, ValueError)
"""Errors of a single document (spans and sentences raise ValueError). All other errors, such as a
missing package, end the job."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that could not be predicted."""

    document: Document
    problem: str
    """The error message, with the name of the document."""
    is_usage: bool = False
    """Whether the error is a UsageError."""

    @property
    def error(self) -> SpandetError:
        """The problem, to raise or to list."""
        return UsageError(self.problem) if self.is_usage else FormatError(self.problem)


Entry = Document | Skipped
"""The result for a document of the input."""


def predicted_windows(
    documents: Iterable[Document],
    predict: Predict,
    *,
    skip_bad: bool,
    done: int = 0,
    where: str = "the input",
) -> Iterator[list[Entry]]:
    """Predict windows of documents; yields one entry per document, in order.

    Args:
        documents: The documents.
        predict: Finds the entities of one window.
        skip_bad: Yield a document that cannot be predicted as `Skipped`.
        done: Number of documents of the input before these.
        where: Name of the input in messages.

    Raises:
        FormatError: a document cannot be predicted, and `skip_bad` is not set; names it.
        UsageError: the same, if the cause is not its data.
    """
    reading = _Reading(documents, done, where, skip_bad=skip_bad)
    for window in windows(reading.documents()):
        entries = reading.taken(len(window))
        try:
            found = list(predict(window))
        except _OF_ONE_DOCUMENT as error:
            problems = _problems(window, error, predict)
            if not problems:  # no document is bad on its own
                raise
            good = [d for n, d in enumerate(window) if n not in problems]
            entries = reading.without(problems, entries)
            found = list(predict(good))
        results = iter(found)
        reading.done += len(entries)
        yield [entry if isinstance(entry, Skipped) else next(results) for entry in entries]
    if rest := reading.taken(0):
        yield list(rest)


class _Reading:
    """Reads documents; those that cannot be split into sentences become `Skipped`."""

    def __init__(
        self, documents: Iterable[Document], done: int, where: str, *, skip_bad: bool
    ) -> None:
        self.done = done
        """Number of documents of the input that were taken."""
        self._documents = documents
        self._where = where
        self._skip_bad = skip_bad
        self._read: deque[Entry] = deque()

    def documents(self) -> Iterator[Document]:
        for document in self._documents:
            try:
                _ = document.sentences  # computed here, because windows count sentences
            except _OF_ONE_DOCUMENT as error:
                number = self.done + len(self._read) + 1
                self._read.append(self._skipped(document, number, error))
            else:
                self._read.append(document)
                yield document

    def taken(self, count: int) -> list[Entry]:
        """The next `count` documents, and the bad ones before, between and after them."""
        entries: list[Entry] = []
        while self._read and (count or isinstance(self._read[0], Skipped)):
            entries.append(self._read.popleft())
            count -= isinstance(entries[-1], Document)
        return entries

    def without(self, problems: dict[int, Exception], entries: Sequence[Entry]) -> list[Entry]:
        """The entries, with documents that could not be predicted replaced by `Skipped`."""
        errors = iter([problems.get(n) for n in range(len(entries))])
        return [
            self._skipped(entry, number, error)
            if isinstance(entry, Document) and (error := next(errors)) is not None
            else entry
            for number, entry in enumerate(entries, start=self.done + 1)
        ]

    def _skipped(self, document: Document, number: int, error: Exception) -> Skipped:
        name = "" if document.id is None else f" ({document.id})"
        what = f"document {number}{name} of {self._where}: {error}"
        skipped = Skipped(document, what, isinstance(error, UsageError))
        if not self._skip_bad:
            raise skipped.error from error
        return skipped


def _problems(
    window: Sequence[Document], error: Exception, predict: Predict, first: int = 0
) -> dict[int, Exception]:
    """Find the documents of a window that cannot be predicted; returns their errors by number.

    The window is bisected; halves that can be predicted are not searched further.
    """
    if len(window) == 1:
        return {first: error}
    found: dict[int, Exception] = {}
    middle = len(window) // 2
    for half, start in ((window[:middle], first), (window[middle:], first + middle)):
        try:
            for _ in predict(half):
                pass
        except _OF_ONE_DOCUMENT as other:
            found |= _problems(half, other, predict, start)
    return found
