"""Traces in a terminal: each sentence with brackets, then a line per entity with its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from spandet.text import CharSpan, Entity
from spandet.viewing.case_study import believed, bracketed, triple, way
from spandet.viewing.cells import printable
from spandet.viewing.colors import LabelNumbers, terminal_style
from spandet.viewing.traces import (
    Candidate,
    MissedEntity,
    TracedDocument,
    TracedEntity,
    TracedSentence,
)

RIGHT, WRONG, MISSED = "✓", "✗", "○"
_STYLES = {RIGHT: "bold green", WRONG: "bold red", MISSED: "bold yellow"}
_HANGING = 6
_NARROWEST = 20


def trace_to_terminal(
    documents: Iterable[TracedDocument],
    *,
    width: int | None,
    color: bool,
    all_stages: bool = False,
) -> Iterator[Text]:
    """Lines of about `width` cells, or as long as they are without one.

    Brackets show the gold entities where there are any, else what was found. An entity that was
    found is marked ✓ or ✗ where there is gold; a gold entity that was missed is marked ○.
    """
    painter = _Painter(width=width, color=color, all_stages=all_stages)
    for document in documents:
        yield from painter.document(document)
    yield from painter.totals()


class _Painter:
    """Knows the width, which label got which colour so far, and the counts of marks."""

    def __init__(self, *, width: int | None, color: bool, all_stages: bool) -> None:
        self.width = width
        self.color = color
        self.all_stages = all_stages
        self.numbers = LabelNumbers()
        self.counts: Counter[str] = Counter()
        self.judged = False

    def document(self, traced: TracedDocument) -> Iterator[Text]:
        if traced.document.id is not None:
            yield from self.wrapped(self.text(f"── {printable(traced.document.id)}", "bold"))
        for sentence in traced.sentences:
            if sentence.sentence.words:
                yield from self.sentence(sentence, traced.document.text)
        for entity in traced.misfits:
            yield from self.wrapped(self.misfit(entity, traced.document.text_of(entity)))

    def sentence(self, traced: TracedSentence, text: str) -> Iterator[Text]:
        shown = self.text("")
        entities = traced.gold
        if entities is None:
            entities = tuple(found.entity for found in traced.found)
        self.judged |= traced.gold is not None
        for piece, label in bracketed(traced.sentence, text, entities):
            shown.append(piece, "" if label is None else self.style(label))
        yield from self.wrapped(shown, hanging=0)
        for found in traced.found:
            yield from self.wrapped(self.found(found))
            for candidate in found.candidates if found.more else ():
                yield from self.wrapped(self.candidate("piece", candidate))
        for missed in traced.missed:
            yield from self.wrapped(self.missed(missed))
            if missed.nearest is not None:
                yield from self.wrapped(self.candidate("nearest", missed.nearest))
        if not traced.found and not traced.missed:
            yield self.text("  nothing found", "dim")
        yield self.text("")

    def found(self, traced: TracedEntity) -> Text:
        line = self.text("  ")
        if traced.right is not None:
            self.mark(line, RIGHT if traced.right else WRONG)
        entity = traced.entity
        line.append(triple(entity.pieces, entity.label), self.style(entity.label))
        if not traced.more:
            line = self.with_way(line, traced.candidate)
        return line.append(f"  {printable(traced.remark)}" if traced.remark else "")

    def missed(self, traced: MissedEntity) -> Text:
        line = self.mark(self.text("  "), MISSED)
        entity = traced.entity
        line.append(triple(entity.pieces, entity.label), self.style(entity.label))
        return line.append(f" missed: {printable(traced.why)}")

    def misfit(self, entity: Entity[CharSpan], words: str) -> Text:
        line = self.mark(self.text("  "), MISSED)
        line.append(printable(f"{words} ({entity.label})"), self.style(entity.label))
        return line.append(" missed: it does not begin and end at word borders of one sentence")

    def totals(self) -> Iterator[Text]:
        if self.judged:
            line = self.text("")
            for mark, name in ((RIGHT, "right"), (WRONG, "wrong"), (MISSED, "missed")):
                line.append("   " if line.plain else "")
                line.append(f"{mark} ", self.painted(_STYLES[mark]))
                line.append(f"{self.counts[mark]:,} {name}")
            yield from self.wrapped(line, hanging=0)

    def mark(self, line: Text, mark: str) -> Text:
        self.counts[mark] += 1
        return line.append(f"{mark} ", self.painted(_STYLES[mark]))

    def candidate(self, name: str, candidate: Candidate) -> Text:
        line = self.text(f"    {name} ")
        line.append(triple([candidate.span], believed(candidate)))
        return self.with_way(line, candidate)

    def with_way(self, line: Text, candidate: Candidate) -> Text:
        return line.append(way(candidate.steps, all_stages=self.all_stages), self.painted("dim"))

    def text(self, text: str, style: str = "") -> Text:
        return Text(text, self.painted(style), overflow="fold")

    def style(self, label: str) -> str:
        return self.painted(terminal_style(self.numbers[label]))

    def painted(self, style: str) -> str:
        return style if self.color else ""

    def wrapped(self, line: Text, hanging: int = _HANGING) -> Iterator[Text]:
        """The line in as many as it needs; those after the first begin farther right."""
        if self.width is None:
            yield line
            return
        width = max(self.width, _NARROWEST)
        console = Console(width=width)
        first = line.wrap(console, width)[0]
        first.rstrip()
        yield first
        rest = line[len(first) :]
        rest = rest[len(rest) - len(rest.plain.lstrip()) :]
        for each in rest.wrap(console, width - hanging) if rest else ():
            each.rstrip()
            yield self.text(" " * hanging).append_text(each)
