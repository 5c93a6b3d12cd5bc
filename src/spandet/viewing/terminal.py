"""Documents in the terminal: lines of text with entities as bars below them, such as └─protein─┘.

Some terminals reverse right-to-left text and some do not, so the columns of its words are unknown.
A sentence with right-to-left text is printed in logical order, and its entities are listed below
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from spandet.text import CharSpan, Document
from spandet.viewing.cells import Line, cut, is_right_to_left, lines, printable
from spandet.viewing.labels import LabelNumbers, terminal_style
from spandet.viewing.layout import Extent, by_block, layers
from spandet.viewing.outcomes import Outcome, ShownEntity, compare_entities

_GAP = "·"
_DASHES = {None: "─", Outcome.HIT: "─", Outcome.MISS: "╌", Outcome.FALSE_ALARM: "┈"}


def to_terminal(documents: Iterable[Document], *, width: int, color: bool) -> Iterator[Text]:
    """Lines of at most `width` cells (2 or more): text, and entities as bars below their words."""
    painter = _Painter(width=width, color=color)
    for document in documents:
        yield from painter.document(document, [ShownEntity(entity) for entity in document.entities])


def comparison_to_terminal(
    pairs: Iterable[tuple[Document, Document]], *, width: int, color: bool
) -> Iterator[Text]:
    """Gold and predicted entities below one text, as hits ✓, misses ✗ and false alarms +."""
    painter = _Painter(width=width, color=color)
    totals: Counter[Outcome] = Counter()
    for gold, predicted in pairs:
        comparison = compare_entities(gold, predicted)
        yield from painter.document(gold, comparison.union)
        for (_, outcome), count in comparison.counts.items():
            totals[outcome] += count
    for outcome in Outcome:
        yield painter.line(f"{outcome.symbol} {outcome.counted(totals[outcome])}")


class _Painter:
    """Draws documents; keeps the width and the colours of the labels so far."""

    def __init__(self, *, width: int, color: bool) -> None:
        if width < 2:
            raise ValueError(f"a terminal needs at least 2 cells, got {width}")
        self.width = width
        self.color = color
        self.numbers = LabelNumbers()

    def line(self, text: str, style: str = "") -> Text:
        """One line that rich does not wrap."""
        shown = Text(style=style if self.color else "", no_wrap=True, overflow="ignore")
        return shown.append(cut(text, self.width))

    def document(self, document: Document, entities: Sequence[ShownEntity]) -> Iterator[Text]:
        if document.id is not None:
            yield self.line(f"── {printable(document.id)}", "bold")
        for shown in entities:  # so that colours follow the order of the file
            self.numbers[shown.entity.label]
        text = printable(document.text)
        for block, own in by_block(document, entities):
            yield from self.block(text, block, own)
        yield self.line("")

    def block(self, text: str, block: CharSpan, entities: Sequence[ShownEntity]) -> Iterator[Text]:
        own = text[block.start : block.end]
        drawn = not is_right_to_left(own)
        for line in lines(own, self.width, block.start):
            yield self.line(line.text)
            for row in _bar_rows(line, entities, self.width) if drawn else ():
                yield self.row(row)
        if not drawn:
            yield from self.listing(
                text, [shown for shown in entities if shown.entity.span.start >= block.start]
            )

    def row(self, bars: Sequence[_Bar]) -> Text:
        line = self.line("")
        for bar in bars:
            line.append(" " * (bar.start - cell_len(line.plain)))
            line.append(bar.drawing, self.style(bar.shown))
        return line

    def listing(self, text: str, entities: Sequence[ShownEntity]) -> Iterator[Text]:
        """The label and the words of each entity, one per line; inner ones are indented."""
        around: list[CharSpan] = []
        for shown in sorted(entities, key=lambda shown: _outer_first(shown.entity.span)):
            span = shown.entity.span
            around = [outer for outer in around if outer.contains(span)]
            words = " … ".join(text[part.start : part.end] for part in shown.entity.spans)
            yield self.line(f"{'  ' * len(around)}└ {_caption(shown)}  {words}", self.style(shown))
            around.append(span)

    def style(self, shown: ShownEntity) -> str:
        return terminal_style(self.numbers[shown.entity.label]) if self.color else ""


def _outer_first(span: CharSpan) -> tuple[int, int]:
    return span.start, -span.end


@dataclass(frozen=True, slots=True)
class _Bar:
    """A drawn entity, and the columns that no other bar of its row may use."""

    shown: ShownEntity
    start: int
    drawing: str
    extent: Extent


def _bar_rows(line: Line, entities: Iterable[ShownEntity], width: int) -> list[list[_Bar]]:
    """The bars below a line, nearest row first, each row from left to right."""
    near = [shown for shown in entities if _touches(line, shown.entity.span)]
    near.sort(key=lambda shown: -len(shown.entity.span))
    bars = [_draw(line, shown, width) for shown in near]
    # Layers are for the drawings, because a label may be wider than its words.
    found = layers([bar.extent for bar in bars])
    result: list[list[_Bar]] = [[] for _ in range(max(found, default=-1) + 1)]
    for bar, layer in sorted(zip(bars, found, strict=True), key=lambda pair: pair[0].start):
        result[layer].append(bar)
    return result


def _caption(shown: ShownEntity) -> str:
    """The label, after the symbol of its outcome."""
    symbol = shown.outcome.symbol if shown.outcome else ""
    return symbol + printable(shown.entity.label)


def _touches(line: Line, span: CharSpan) -> bool:
    return span.start < line.end and line.start < span.end


def _columns(line: Line, span: CharSpan) -> Extent:
    """The columns of the part of a span on this line; at least one, even for a lone accent."""
    first = max(span.start, line.start) - line.start
    last = min(span.end, line.end) - line.start - 1
    return line.left[first], max(line.right[last], line.left[first] + 1)


def _draw(line: Line, shown: ShownEntity, width: int) -> _Bar:
    """The bar with its label: inside if it fits, otherwise to the right or to the left."""
    start, end = _columns(line, shown.entity.span)
    canvas = [_GAP] * (end - start)
    widest = (start, start)
    for part in shown.entity.spans:
        if _touches(line, part):
            columns = _columns(line, part)
            drawn, inside = _draw_fragment(line, part, columns, _DASHES[shown.outcome])
            canvas[columns[0] - start : columns[1] - start] = drawn
            widest = max(widest, inside, key=lambda run: run[1] - run[0])
    rooms = [widest[1] - widest[0], width - end, start]
    size = cell_len(_caption(shown))
    place = next((i for i, room in enumerate(rooms) if size <= room), rooms.index(max(rooms)))
    label = cut(_caption(shown), rooms[place])
    size = cell_len(label)
    if place == 0:
        at = widest[0] - start + (size < rooms[0])  # a dash before the label if there is room
        canvas[at : at + size] = [label]
    bar = "".join(canvas)
    if place == 1:  # with an empty cell between the label and the next bar
        return _Bar(shown, start, bar + label, (start, end + size + 1))
    if place == 2:
        return _Bar(shown, start - size, label + bar, (start - size - 1, end))
    return _Bar(shown, start, bar, (start, end))


def _draw_fragment(
    line: Line, fragment: CharSpan, columns: Extent, dash: str
) -> tuple[list[str], Extent]:
    """The cells of a fragment, with corners at its ends, and the columns between the corners."""
    start, end = columns
    opens, closes = fragment.start >= line.start, fragment.end <= line.end
    cells = [dash] * (end - start)
    if opens and closes and len(cells) == 1:
        return ["╵"], (start, start)
    if opens:
        cells[0] = "└"
    if closes:
        cells[-1] = "┘"
    return cells, (start + opens, max(start + opens, end - closes))
