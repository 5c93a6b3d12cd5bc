"""Layout of the bars of entities: blocks of text, layers, and the rows of a trace."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import ceil, floor

from rich.cells import cell_len

from spandet.text import CharSpan, Document, Entity, WordSpan
from spandet.viewing.cells import printable
from spandet.viewing.labels import label_pixels
from spandet.viewing.outcomes import Outcome, ShownEntity
from spandet.viewing.traces import Candidate, TracedSentence

Extent = tuple[int, int]
"""Start and end of a bar, half-open."""

_LETTER_PIXELS = 8


def blocks(document: Document) -> list[CharSpan]:
    """The text cut before the first word of each sentence but the first; nothing is left out."""
    if not document.text:
        return []
    starts = {sentence.starts[0] for sentence in document.sentences if sentence.starts}
    later = sorted(starts)[1:]  # text before the first word belongs to the first block
    return [CharSpan(start, end) for start, end in pairwise([0, *later, len(document.text)])]


def by_block(
    document: Document, entities: Iterable[ShownEntity]
) -> list[tuple[CharSpan, list[ShownEntity]]]:
    """Each block with the entities that overlap it."""
    own: list[tuple[CharSpan, list[ShownEntity]]] = [(block, []) for block in blocks(document)]
    starts = [block.start for block, _ in own]
    for shown in entities:
        first = bisect_right(starts, shown.entity.span.start) - 1
        for _, found in own[first : bisect_left(starts, shown.entity.span.end)]:
            found.append(shown)
    return own


def layers(extents: Sequence[Extent]) -> list[int]:
    """The layer of each bar, 0 nearest to the text; overlapping bars have different layers.

    From left to right, each bar takes the nearest free layer, so that the number of layers is
    minimal. Of bars with the same start, the outer one must come first in `extents`. An outer bar
    is nearer to the text than those inside it, unless a crossing bar already occupies that layer.
    """
    found = [0] * len(extents)
    running: list[tuple[int, int]] = []  # end and layer of bars that may reach the next start
    free: list[int] = []
    used = 0
    for i in sorted(range(len(extents)), key=lambda i: extents[i][0]):
        start, end = extents[i]
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        if free:
            found[i] = heappop(free)
        else:
            found[i], used = used, used + 1
        heappush(running, (end, found[i]))
    return found


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A predicted entity, or a missed one with the candidate nearest to it."""

    entity: Entity[WordSpan]
    candidates: tuple[Candidate, ...]
    """One per fragment of a predicted entity; at most one for a missed entity."""
    outcome: Outcome | None
    note: str
    """What is wrong with the entity."""

    @property
    def places(self) -> Iterator[tuple[float, float]]:
        """The positions of its bars at all stages, in words."""
        yield self.entity.span.start, self.entity.span.end
        for candidate in self.candidates:
            yield from ((step.start, step.end) for step in candidate.steps)
            yield candidate.span.start, candidate.span.end


@dataclass(frozen=True, slots=True)
class TraceLayout:
    """The rows of a sentence and their layers; bars do not overlap at any stage."""

    rows: tuple[TraceRow, ...]
    layers: tuple[int, ...]
    """The layer of each row, 0 nearest to the words."""
    rooms: tuple[int, ...]
    """The number of layers below each word."""


def trace_layout(sentence: TracedSentence) -> TraceLayout:
    """The layout of a sentence: predicted entities first, then missed ones."""
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
    return TraceLayout(rows, tuple(found), tuple(rooms))


def _rows(sentence: TracedSentence) -> Iterable[TraceRow]:
    outcomes = {True: Outcome.HIT, False: Outcome.FALSE_ALARM, None: None}
    for found in sentence.found:
        yield TraceRow(found.entity, found.candidates, outcomes[found.right], found.remark)
    for missed in sentence.missed:
        nearest = () if missed.nearest is None else (missed.nearest,)
        yield TraceRow(missed.entity, nearest, Outcome.MISS, missed.why)


class _Columns:
    """The approximate distance of each word from the start of the sentence, in letters."""

    def __init__(self, words: Sequence[str]) -> None:
        widths = [max(1, cell_len(printable(word))) + 1 for word in words]
        self.edges = list(accumulate(widths, initial=0))

    def __call__(self, place: float) -> float:
        """The column of a boundary, which may be inside a word."""
        last = len(self.edges) - 1
        inside = min(max(place, 0.0), float(last))
        word = min(floor(inside), last - 1)
        width = self.edges[word + 1] - self.edges[word]
        return self.edges[word] + (inside - word) * width

    def extent(self, row: TraceRow) -> Extent:
        """The columns that a row needs over all stages, with the name beside the bar."""
        name = ceil(label_pixels(row.entity.label) / _LETTER_PIXELS)
        places = [(self(min(place)), self(max(place))) for place in row.places]
        ends = (end if end - start > name else end + name for start, end in places)
        return floor(min(start for start, _ in places)), ceil(max(ends))

    def words_in(self, extent: Extent) -> range:
        """The words above an extent."""
        first = bisect_right(self.edges, extent[0]) - 1
        return range(first, min(bisect_left(self.edges, extent[1]), len(self.edges) - 1))
