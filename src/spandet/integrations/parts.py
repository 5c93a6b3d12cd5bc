"""One part of a job on Ray: a shard, predicted and written."""

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
class PartDone:
    """What became of one shard."""

    number: int
    documents: int
    entities: int
    skipped: int
    problems: Sequence[str]
    """The first bad records and documents."""
    process: int
    """The worker's process id."""
    error: str | None = None
    usage: bool = False
    """Is the error one of arguments, not of data?"""


def make_part(
    shard: Shard, predict: Predict, folder: PartFolder, name: str, *, skip_bad: bool
) -> PartDone:
    """Predict a shard, and write its part and the receipt; an error is in what it gives."""
    tally = _Tally()

    def done(error: SpandetError | None = None) -> PartDone:
        return PartDone(
            shard.number,
            tally.documents,
            tally.entities,
            tally.skipped,
            tally.bad,
            os.getpid(),
            None if error is None else str(error),
            isinstance(error, UsageError),
        )

    try:
        checksum = folder.write(tally.found(shard, predict, skip_bad=skip_bad), name)
        folder.sign(name, checksum, asdict(done()))
    except SpandetError as problem:
        return done(problem)
    return done()


@dataclass(slots=True)
class _Tally:
    """Counts what passes."""

    documents: int = 0
    entities: int = 0
    skipped: int = 0
    bad: list[str] = field(default_factory=list)
    """The first of them."""

    def found(self, shard: Shard, predict: Predict, *, skip_bad: bool) -> Iterator[Document]:
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
        if len(self.bad) < SHOWN_SKIPS:
            self.bad.append(problem)
