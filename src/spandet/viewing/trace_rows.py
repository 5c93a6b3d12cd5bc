"""Where the bars of a traced sentence go, so that they never meet at any stage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor

from rich.cells import cell_len

from spandet.text import Entity, WordSpan
from spandet.viewing.cells import printable
from spandet.viewing.labels import label_pixels
from spandet.viewing.layers import Extent, layers
from spandet.viewing.traces import Candidate, TracedSentence
from spandet.viewing.verdicts import Verdict

_LETTER_PIXELS = 8


@dataclass(frozen=True, slots=True)
class Row:
    """An entity to show: what was found, or what was missed with the candidate nearest to it."""

    entity: Entity[WordSpan]
    candidates: tuple[Candidate, ...]
    """One for each piece of what was found; at most one for what was missed."""
    verdict: Verdict | None
    note: str
    """What is wrong with it."""

    @property
    def places(self) -> Iterator[tuple[float, float]]:
        """Everywhere its bars stand at some stage."""
        yield self.entity.span.start, self.entity.span.end
        for candidate in self.candidates:
            yield from ((step.start, step.end) for step in candidate.steps)
            yield candidate.span.start, candidate.span.end


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a sentence on their layers."""

    rows: tuple[Row, ...]
    layers: tuple[int, ...]
    """The layer of each row, 0 nearest to the words."""
    rooms: tuple[int, ...]
    """How many layers each word must leave room for."""


def table_of(sentence: TracedSentence) -> Table:
    """Rows in the order of the case study: what was found, then what was missed."""
    rows = tuple(_rows(sentence))
    columns = _Columns(sentence.sentence.words)
    extents = [columns.extent(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: extents[i][0] - extents[i][1])
    found = [0] * len(rows)
    for i, layer in zip(order, layers([extents[i] for i in order]), strict=True):
        found[i] = layer
    rooms = [0] * len(sentence.sentence.words)
    for extent, layer in zip(extents, found, strict=True):
        for word in columns.words_in(extent):
            rooms[word] = max(rooms[word], layer + 1)
    return Table(rows, tuple(found), tuple(rooms))


def _rows(sentence: TracedSentence) -> Iterable[Row]:
    verdicts = {True: Verdict.HIT, False: Verdict.FALSE_ALARM, None: None}
    for found in sentence.found:
        yield Row(found.entity, found.candidates, verdicts[found.right], found.remark)
    for missed in sentence.missed:
        nearest = () if missed.nearest is None else (missed.nearest,)
        yield Row(missed.entity, nearest, Verdict.MISS, missed.why)


class _Columns:
    """About how far from the start each word of a sentence begins, in letters."""

    def __init__(self, words: Sequence[str]) -> None:
        widths = [max(1, cell_len(printable(word))) + 1 for word in words]
        self.edges = list(accumulate(widths, initial=0))

    def __call__(self, place: float) -> float:
        """The column of a boundary, which may lie inside a word."""
        last = len(self.edges) - 1
        inside = min(max(place, 0.0), float(last))
        word = min(floor(inside), last - 1)
        width = self.edges[word + 1] - self.edges[word]
        return self.edges[word] + (inside - word) * width

    def extent(self, row: Row) -> Extent:
        """From the leftmost to the rightmost of a row, with its name beside the bar."""
        name = ceil(label_pixels(row.entity.label) / _LETTER_PIXELS)
        places = [(self(min(place)), self(max(place))) for place in row.places]
        ends = (end if end - start > name else end + name for start, end in places)
        return floor(min(start for start, _ in places)), ceil(max(ends))

    def words_in(self, extent: Extent) -> range:
        """The words above it."""
        first = bisect_right(self.edges, extent[0]) - 1
        return range(first, min(bisect_left(self.edges, extent[1]), len(self.edges) - 1))
