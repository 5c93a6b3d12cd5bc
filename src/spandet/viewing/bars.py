"""One entity under one line of a terminal: └─protein─┘, with its label inside or beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len

from spandet.text import CharSpan
from spandet.viewing.cells import Line, cut, printable
from spandet.viewing.layers import Extent, layers
from spandet.viewing.verdicts import Judged, Verdict

_GAP = "·"
_DASHES = {None: "─", Verdict.HIT: "─", Verdict.MISS: "╌", Verdict.FALSE_ALARM: "┈"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A drawn entity, and the columns that no other bar of its row may enter."""

    judged: Judged
    start: int
    drawing: str
    extent: Extent


def rows(line: Line, entities: Iterable[Judged], width: int) -> list[list[Bar]]:
    """The bars under a line, nearest row first, each row from left to right."""
    near = [judged for judged in entities if _touches(line, judged.entity.span)]
    near.sort(key=lambda judged: -len(judged.entity.span))
    bars = [_draw(line, judged, width) for judged in near]
    # What must not overlap here are the drawings, because a label may be wider than its words.
    found = layers([bar.extent for bar in bars])
    under: list[list[Bar]] = [[] for _ in range(max(found, default=-1) + 1)]
    for bar, layer in sorted(zip(bars, found, strict=True), key=lambda pair: pair[0].start):
        under[layer].append(bar)
    return under


def caption(judged: Judged) -> str:
    """The label, with the symbol of its verdict."""
    symbol = judged.verdict.symbol if judged.verdict else ""
    return symbol + printable(judged.entity.label)


def _touches(line: Line, span: CharSpan) -> bool:
    return span.start < line.end and line.start < span.end


def _columns(line: Line, span: CharSpan) -> Extent:
    """The cells of a span's part on this line; at least one, even for a lone accent."""
    first = max(span.start, line.start) - line.start
    last = min(span.end, line.end) - line.start - 1
    return line.left[first], max(line.right[last], line.left[first] + 1)


def _draw(line: Line, judged: Judged, width: int) -> Bar:
    """The bar, its label where there is most room: inside if it fits, else right or left of it."""
    start, end = _columns(line, judged.entity.span)
    canvas = [_GAP] * (end - start)
    widest = (start, start)
    for piece in judged.entity.pieces:
        if _touches(line, piece):
            columns = _columns(line, piece)
            drawn, inside = _draw_piece(line, piece, columns, _DASHES[judged.verdict])
            canvas[columns[0] - start : columns[1] - start] = drawn
            widest = max(widest, inside, key=lambda run: run[1] - run[0])
    rooms = [widest[1] - widest[0], width - end, start]
    size = cell_len(caption(judged))
    place = next((i for i, room in enumerate(rooms) if size <= room), rooms.index(max(rooms)))
    label = cut(caption(judged), rooms[place])
    size = cell_len(label)
    if place == 0:
        at = widest[0] - start + (size < rooms[0])  # a dash before the label where there is room
        canvas[at : at + size] = [label]
    bar = "".join(canvas)
    if place == 1:  # a label beside its bar keeps a cell away from the neighbour
        return Bar(judged, start, bar + label, (start, end + size + 1))
    if place == 2:
        return Bar(judged, start - size, label + bar, (start - size - 1, end))
    return Bar(judged, start, bar, (start, end))


def _draw_piece(
    line: Line, piece: CharSpan, columns: Extent, dash: str
) -> tuple[list[str], Extent]:
    """Its cells, with a corner where it begins or ends, and the columns between the corners."""
    start, end = columns
    opens, closes = piece.start >= line.start, piece.end <= line.end
    cells = [dash] * (end - start)
    if opens and closes and len(cells) == 1:
        return ["╵"], (start, start)
    if opens:
        cells[0] = "└"
    if closes:
        cells[-1] = "┘"
    return cells, (start + opens, max(start + opens, end - closes))
