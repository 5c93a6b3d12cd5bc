"""What belongs to one record and comes in pieces; a record that does not end fills no memory."""

from __future__ import annotations

from spandet.formats import source as limits
from spandet.formats.source import Source, too_long
from spandet.text import WordRow

_ITEM_BYTES = 16
"""What a word or a line costs beside its characters."""


class Allowance:
    """How much of a record has been kept; more than a record may have is an error."""

    def __init__(self, place: str, what: str) -> None:
        self._place = place
        self._what = what
        self._used = 0

    def use(self, characters: int, *, items: int = 1) -> None:
        """Count what is going to be kept.

        Raises:
            FormatError: it is too much.
        """
        self._used += characters + _ITEM_BYTES * items
        if self._used > limits.MOST_BYTES:
            raise too_long(self._what).at(self._place)


class Rows(list[WordRow]):
    """The sentences of a document that has not ended yet."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._allowance = Allowance(source.name, "document")

    def append(self, row: WordRow) -> None:
        """One more sentence."""
        kept = (*row.words, *row.tags, *row.before, *row.after, str(row.metadata))
        self._allowance.use(sum(map(len, kept)), items=len(kept) + len(row.entities))
        super().append(row)
