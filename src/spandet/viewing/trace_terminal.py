"""Traces in the terminal: each sentence with brackets, then each entity with its trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from spandet.text import CharSpan, Entity
from spandet.viewing.cells import printable
from spandet.viewing.labels import LabelNumbers, terminal_style
from spandet.viewing.trace_notation import best_label, bracketed, trajectory, triple
from spandet.viewing.traces import (
    Candidate,
    MissedEntity,
    TracedDocument,
    TracedEntity,
    TracedSentence,
)

CORRECT, WRONG, MISSED = "✓", "✗", "○"
_STYLES = {CORRECT: "bold green", WRONG: "bold red", MISSED: "bold yellow"}
_HANGING = 6
_NARROWEST = 20


def trace_to_terminal(
    documents: Iterable[TracedDocument],
    *,
    width: int | None,
    color: bool,
    all_stages: bool = False,
) -> Iterator[Text]:
    """Lines of at most about `width` cells; without a width, lines are not wrapped.

    Brackets show the gold entities, or the predicted ones where there is no gold. With gold,
    predicted entities are marked ✓ or ✗, and missed ones ○.
    """
    painter = _Painter(width=width, color=color, all_stages=all_stages)
    for document in documents:
        yield from painter.document(document)
    yield from painter.totals()


class _Painter:
    """Draws traces; keeps the width, the colours of the labels so far, and the counts of marks."""

    def __init__(self, *, width: int | None, color: bool, all_stages: bool) -> None:
        self.width = width
        self.color = color
        self.all_stages = all_stages
        self.numbers = LabelNumbers()
        self.counts: Counter[str] = Counter()
        self.has_gold = False

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
        self.has_gold |= traced.gold is not None
        for part, label in bracketed(traced.sentence, text, entities):
            shown.append(part, "" if label is None else self.style(label))
        yield from self.wrapped(shown, hanging=0)
        for found in traced.found:
            yield from self.wrapped(self.found(found))
            for candidate in found.candidates if found.more else ():
                yield from self.wrapped(self.candidate("fragment", candidate))
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
            self.mark(line, CORRECT if traced.right else WRONG)
        entity = traced.entity
        line.append(triple(entity.spans, entity.label), self.style(entity.label))
        if not traced.more:
            line = self.with_trajectory(line, traced.candidate)
        return line.append(f"  {printable(traced.remark)}" if traced.remark else "")

    def missed(self, traced: MissedEntity) -> Text:
        line = self.mark(self.text("  "), MISSED)
        entity = traced.entity
        line.append(triple(entity.spans, entity.label), self.style(entity.label))
        return line.append(f" missed: {printable(traced.why)}")

    def misfit(self, entity: Entity[CharSpan], words: str) -> Text:
        line = self.mark(self.text("  "), MISSED)
        line.append(printable(f"{words} ({entity.label})"), self.style(entity.label))
        return line.append(" missed: it does not begin and end at word boundaries of one sentence")

    def totals(self) -> Iterator[Text]:
        if self.has_gold:
            line = self.text("")
            for mark, name in ((CORRECT, "correct"), (WRONG, "wrong"), (MISSED, "missed")):
                line.append("   " if line.plain else "")
                line.append(f"{mark} ", self.painted(_STYLES[mark]))
                line.append(f"{self.counts[mark]:,} {name}")
            yield from self.wrapped(line, hanging=0)

    def mark(self, line: Text, mark: str) -> Text:
        self.counts[mark] += 1
        return line.append(f"{mark} ", self.painted(_STYLES[mark]))

    def candidate(self, name: str, candidate: Candidate) -> Text:
        line = self.text(f"    {name} ")
        line.append(triple([candidate.span], best_label(candidate)))
        return self.with_trajectory(line, candidate)

    def with_trajectory(self, line: Text, candidate: Candidate) -> Text:
        return line.append(
            trajectory(candidate.steps, all_stages=self.all_stages), self.painted("dim")
        )

    def text(self, text: str, style: str = "") -> Text:
        return Text(text, self.painted(style), overflow="fold")

    def style(self, label: str) -> str:
        return self.painted(terminal_style(self.numbers[label]))

    def painted(self, style: str) -> str:
        return style if self.color else ""

    def wrapped(self, line: Text, hanging: int = _HANGING) -> Iterator[Text]:
        """The line wrapped to the width; continuation lines are indented."""
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
