"""Prediction of one shard of the input into one part of the output, on a worker of Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from spandet.errors import SpandetError, UsageError
from spandet.formats.corpus import SHOWN_SKIPS
from spandet.inference.bad_documents import Predict, Skipped, predicted_windows
from spandet.text import Document

if TYPE_CHECKING:  # these need pyarrow
    from spandet.integrations.part_folder import PartFolder
    from spandet.integrations.shards import Shard


@dataclass(frozen=True, slots=True)
class PartReport:
    """Counts and problems of one part; also stored in its receipt."""

    number: int
    documents: int
    entities: int
    skipped: int
    problems: Sequence[str]
    """The first bad records and documents."""
    process: int
    """Process id of the worker."""
    error: str | None = None
    usage: bool = False
    """Whether the error is a `UsageError`, not a `FormatError`."""


def predict_part(
    shard: Shard, predict: Predict, folder: PartFolder, name: str, *, skip_bad: bool
) -> PartReport:
    """Predict a shard and write its part and receipt; the report has the error, if there is one."""
    counter = _Counter()

    def report(error: SpandetError | None = None) -> PartReport:
        return PartReport(
            shard.number,
            counter.documents,
            counter.entities,
            counter.skipped,
            counter.problems,
            os.getpid(),
            None if error is None else str(error),
            isinstance(error, UsageError),
        )

    try:
        checksum = folder.write(counter.predicted(shard, predict, skip_bad=skip_bad), name)
        folder.write_receipt(name, checksum, asdict(report()))
    except SpandetError as error:
        return report(error)
    return report()


@dataclass(slots=True)
class _Counter:
    """Counts documents and entities while they are predicted."""

    documents: int = 0
    entities: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    """The first bad records and documents."""

    def predicted(self, shard: Shard, predict: Predict, *, skip_bad: bool) -> Iterator[Document]:
        """The documents of a shard with their entities."""
        good = self._good(shard, skip_bad=skip_bad)
        for window in predicted_windows(good, predict, skip_bad=skip_bad, where=shard.name):
            for entry in window:
                if isinstance(entry, Skipped):
                    self._skip(entry.problem)
                    continue
                self.documents += 1
                self.entities += len(entry.entities)
                yield entry

    def _good(self, shard: Shard, *, skip_bad: bool) -> Iterator[Document]:
        for parsed in shard.read():
            if isinstance(parsed, Document):
                yield parsed
            elif skip_bad:
                self._skip(str(parsed))
            else:
                raise parsed

    def _skip(self, problem: str) -> None:
        self.skipped += 1
        if len(self.problems) < SHOWN_SKIPS:
            self.problems.append(problem)
