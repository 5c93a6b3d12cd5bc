"""Documents in a terminal: lines of text, and under each line its entities as layered bars.

Right-to-left text: some terminals reverse it and some do not, so no column can be trusted. A
sentence that holds any is printed in the order of its characters, as terminals expect it, and its
entities are listed below it instead of being drawn under its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from spandet.text import CharSpan, Document
from spandet.viewing.bars import Bar, caption, rows
from spandet.viewing.blocks import by_block
from spandet.viewing.cells import cut, is_right_to_left, lines, printable
from spandet.viewing.colors import LabelNumbers, terminal_style
from spandet.viewing.verdicts import Judged, Verdict, judge


def to_terminal(documents: Iterable[Document], *, width: int, color: bool) -> Iterator[Text]:
    """Lines of at most `width` cells (2 or more): text, and entities as bars under their words."""
    painter = _Painter(width=width, color=color)
    for document in documents:
        yield from painter.document(document, [Judged(entity) for entity in document.entities])


def comparison_to_terminal(
    pairs: Iterable[tuple[Document, Document]], *, width: int, color: bool
) -> Iterator[Text]:
    """Gold and predicted under one copy of the text, as hits ✓, misses ✗ and false alarms +."""
    painter = _Painter(width=width, color=color)
    totals: Counter[Verdict] = Counter()
    for gold, predicted in pairs:
        comparison = judge(gold, predicted)
        yield from painter.document(gold, comparison.union)
        for (_, verdict), count in comparison.counts.items():
            totals[verdict] += count
    for verdict in Verdict:
        yield painter.line(f"{verdict.symbol} {verdict.counted(totals[verdict])}")


class _Painter:
    """Knows the width, and which label got which colour so far."""

    def __init__(self, *, width: int, color: bool) -> None:
        if width < 2:
            raise ValueError(f"a terminal needs at least 2 cells, got {width}")
        self.width = width
        self.color = color
        self.numbers = LabelNumbers()

    def line(self, text: str, style: str = "") -> Text:
        """One line that no printer wraps again."""
        shown = Text(style=style if self.color else "", no_wrap=True, overflow="ignore")
        return shown.append(cut(text, self.width))

    def document(self, document: Document, entities: Sequence[Judged]) -> Iterator[Text]:
        if document.id is not None:
            yield self.line(f"── {printable(document.id)}", "bold")
        for judged in entities:  # in the order of the file, not in that of the drawing
            self.numbers[judged.entity.label]
        text = printable(document.text)
        for block, own in by_block(document, entities):
            yield from self.block(text, block, own)
        yield self.line("")

    def block(self, text: str, block: CharSpan, entities: Sequence[Judged]) -> Iterator[Text]:
        own = text[block.start : block.end]
        drawn = not is_right_to_left(own)
        for line in lines(own, self.width, block.start):
            yield self.line(line.text)
            for row in rows(line, entities, self.width) if drawn else ():
                yield self.row(row)
        if not drawn:
            yield from self.listing(
                text, [judged for judged in entities if judged.entity.span.start >= block.start]
            )

    def row(self, bars: Sequence[Bar]) -> Text:
        shown = self.line("")
        for bar in bars:
            shown.append(" " * (bar.start - cell_len(shown.plain)))
            shown.append(bar.drawing, self.style(bar.judged))
        return shown

    def listing(self, text: str, entities: Sequence[Judged]) -> Iterator[Text]:
        """Label and words of each entity, one a line; inner ones are indented."""
        around: list[CharSpan] = []
        for judged in sorted(entities, key=lambda judged: _outer_first(judged.entity.span)):
            span = judged.entity.span
            around = [outer for outer in around if outer.contains(span)]
            words = " … ".join(text[piece.start : piece.end] for piece in judged.entity.pieces)
            yield self.line(f"{'  ' * len(around)}└ {caption(judged)}  {words}", self.style(judged))
            around.append(span)

    def style(self, judged: Judged) -> str:
        return terminal_style(self.numbers[judged.entity.label]) if self.color else ""


def _outer_first(span: CharSpan) -> tuple[int, int]:
    return span.start, -span.end
