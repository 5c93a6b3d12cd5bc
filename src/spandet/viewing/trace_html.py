"""Traces as a self-contained HTML page: bars below the words, and a slider over the stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len

from spandet.rendering.html import html_page
from spandet.text import Sentence
from spandet.viewing.html import counted, resource
from spandet.viewing.labels import LabelNumbers, label_rules
from spandet.viewing.layout import TraceLayout, TraceRow, trace_layout
from spandet.viewing.markup import safe
from spandet.viewing.outcomes import Outcome
from spandet.viewing.trace_notation import NO_ENTITY, best_label, gap, pair, trajectory, triple
from spandet.viewing.traces import Candidate, LabelProbs, Step, TracedDocument, TracedSentence

_END = "predicted"
_NOTHING = '<p class="none">nothing found</p>'
_MARKS = {None: "", Outcome.HIT: "✓", Outcome.FALSE_ALARM: "✗", Outcome.MISS: "○"}
_NAMES = {Outcome.HIT: "correct", Outcome.FALSE_ALARM: "wrong", Outcome.MISS: "missed"}
_SHOWN_LABELS = 5
_LEAST_SHOWN = 0.005
_LONGEST_RUN = 24
_MANY_STAGES = 6


def trace_to_html(documents: Iterable[TracedDocument], *, title: str) -> str:
    """A page of traced documents, with a slider and a play button for the stages."""
    writer = _Writer()
    articles = "\n".join([writer.article(document) for document in documents])
    numbers = writer.numbers
    rules = "".join(label_rules(number, label) for number, label in enumerate(numbers.labels()))
    return html_page(
        title=title,
        body=(
            f'<p class="soft summary">{writer.summary()}</p>\n{writer.controls()}\n'
            f"<main>\n{articles}\n</main>\n"
            '<div id="tip" role="status" hidden></div>'
        ),
        style=resource("trace.css") + rules,
        script=resource("trace.js"),
    )


class _Writer:
    """Writes one article per document and counts its content."""

    def __init__(self) -> None:
        self.numbers = LabelNumbers()
        self.stages: tuple[str, ...] = ()
        self.outcomes: Counter[Outcome] = Counter()
        self.documents = self.sentences = self.flawed = self.found = 0
        self.has_gold = False

    def article(self, traced: TracedDocument) -> str:
        """One document."""
        self.documents += 1
        self.stages = self.stages or traced.stages
        self.outcomes[Outcome.MISS] += len(traced.misfits)
        name = traced.document.id
        heading = "" if name is None else f"<h2><bdi>{safe(name)}</bdi></h2>"
        shown = "".join(
            self.sentence(sentence, traced.document.text)
            for sentence in traced.sentences
            if sentence.sentence.words
        )
        misfits = "".join(
            f'<p class="misfit"><b>○</b> <bdi>{safe(traced.document.text_of(entity))}</bdi> '
            f"(<bdi>{safe(entity.label)}</bdi>) missed: it does not begin and end at word "
            "boundaries of one sentence</p>"
            for entity in traced.misfits
        )
        kind = "flawless" if traced.is_flawless else "flawed"
        return f'<article class="{kind}">{heading}{shown}{misfits}</article>'

    def sentence(self, traced: TracedSentence, text: str) -> str:
        """The words with room for their bars, and below them the trajectories."""
        self.sentences += 1
        self.flawed += not traced.is_flawless
        self.found += len(traced.found)
        self.has_gold |= traced.gold is not None
        layout = trace_layout(traced)
        kind = "flawless" if traced.is_flawless else "flawed"
        rows = "".join(
            self.row(row, layer) for row, layer in zip(layout.rows, layout.layers, strict=True)
        )
        listed = f'<ol class="trajectories">{rows}</ol>' if rows else _NOTHING
        words = _words(traced.sentence, text, layout)
        return (
            f'<section class="{kind}" data-number="{self.sentences}">'
            f'<p class="words" dir="auto" lang="">{words}</p>{listed}</section>'
        )

    def row(self, row: TraceRow, layer: int) -> str:
        """One entity: a line that opens to a table of its stages."""
        number = self.numbers[row.entity.label]
        names = f"k{number}"
        if row.outcome is not None:
            self.outcomes[row.outcome] += 1
            names += f" {row.outcome.value}"
        data = f'data-layer="{layer}" data-name="{safe(row.entity.label)}"'
        if row.outcome is Outcome.MISS:
            gold = ";".join(f"{part.start},{part.end}" for part in row.entity.spans)
            data += f' data-gold="{gold}"'
        if not row.candidates:
            return f'<li class="{names}" {data}><p>{_line(row)}</p></li>'
        label = row.entity.label
        positions = "|".join(_positions(label, candidate) for candidate in row.candidates)
        data += f' data-steps="{positions}"'
        stages = "".join(_stages(label, candidate) for candidate in row.candidates)
        return (
            f'<li class="{names}" {data}><details><summary>{_line(row)}</summary>'
            f"{stages}</details></li>"
        )

    def summary(self) -> str:
        """Counts of documents, sentences and entities."""
        counts = [
            counted(self.documents, "document", "documents"),
            counted(self.sentences, "sentence", "sentences"),
            f"{self.found:,} found",
        ]
        outcomes = "".join(
            f' · <span class="mark {outcome.value}">{_MARKS[outcome]}</span> '
            f"{self.outcomes[outcome]:,} {name}"
            for outcome, name in _NAMES.items()
            if self.has_gold
        )
        return " · ".join(counts) + outcomes

    def controls(self) -> str:
        """The play button, the slider, and a button per stage."""
        names = (*self.stages, _END)
        only = (
            '<label class="only"><input type="checkbox" id="errors"> only the '
            f"{self.flawed:,} of {counted(self.sentences, 'sentence', 'sentences')} with errors"
            "</label>"
        )
        stops = "".join(
            f'<button type="button" class="stop" title="{safe(name)}">{safe(shown)}</button>'
            for name, shown in zip(names, _shortened(names), strict=True)
        )
        slider = (
            '<button type="button" id="play" aria-label="Play">'
            '<svg viewBox="0 0 16 16" aria-hidden="true"><path class="go" d="M4 2.5v11l9-5.5z"/>'
            '<path class="rest" d="M3.5 3h3v10h-3zM9.5 3h3v10h-3z"/></svg></button>'
            '<div class="scale"><input type="range" id="stage" min="0" '
            f'max="{len(names) - 1}" step="any" value="{len(names) - 1}" aria-label="Stage">'
            f'<div class="stops">{stops}</div></div>'
        )
        return (
            '<form id="controls">'
            f"{slider if self.stages else ''}{only if self.has_gold else ''}</form>"
            '<p class="soft hint">Press play or drag the slider to see the boundaries of each '
            "stage; the arrow keys go from stage to stage. Open a line, or point at a bar, for "
            "scores and label probabilities. The two numbers of a span are its first and its last "
            "word.</p>"
        )


def _words(sentence: Sentence, text: str, layout: TraceLayout) -> str:
    """The words, each with room for its bars; words without a space between stay on one line."""
    ends = [start + len(word) for start, word in zip(sentence.starts, sentence.words, strict=True)]
    gaps = [gap(text[end:start]) for end, start in zip(ends, sentence.starts[1:], strict=False)]
    parts = []
    for run in _runs(sentence.words, gaps):
        inside = "".join(
            f'<span class="w" style="--n:{layout.rooms[i]}">{safe(sentence.words[i])}</span>'
            for i in run
        )
        parts.append(inside if len(run) == 1 else f'<span class="run">{inside}</span>')
        parts.append(safe(gaps[run[-1]]) if run[-1] < len(gaps) else "")
    return "".join(parts)


def _runs(words: Sequence[str], gaps: Sequence[str]) -> Iterator[list[int]]:
    """Words that stay on one line, such as punctuation and the word before, but not Chinese."""
    run, length = [0], len(words[0])
    for i, (before, after) in enumerate(pairwise(words), start=1):
        narrow = cell_len(before[-1:]) < 2 and cell_len(after[:1]) < 2
        if gaps[i - 1] or not narrow or length + len(after) > _LONGEST_RUN:
            yield run
            run, length = [], 0
        run.append(i)
        length += len(after)
    yield run


def _line(row: TraceRow) -> str:
    """The entity and its trajectories as one line."""
    mark = f'<b class="mark">{_MARKS[row.outcome]}</b> ' if row.outcome else ""
    own = f'<span class="triple">{safe(triple(row.entity.spans, row.entity.label))}</span>'
    trajectories = [_unbroken(trajectory(candidate.steps)) for candidate in row.candidates]
    if row.outcome is not Outcome.MISS and len(trajectories) < 2:
        note = f'<span class="note">{safe(row.note)}</span>' if row.note else ""
        return f'{mark}{own}<span class="trajectory">{"".join(trajectories)}</span>{note}'
    missed = row.outcome is Outcome.MISS
    line = f"{mark}{own}{' missed:' if missed else ''} {safe(row.note)}"
    name = "nearest" if missed else "fragment"
    for candidate, stages in zip(row.candidates, trajectories, strict=True):
        place = _unbroken(triple([candidate.span], best_label(candidate)))
        line += f'<span class="note trajectory">{name} {place}{stages}</span>'
    return line


def _unbroken(text: str) -> str:
    """Text whose lines break only before an arrow."""
    return safe(text).replace(", ", ",\u00a0").replace("← ", "←\u00a0")


def _positions(label: str, candidate: Candidate) -> str:
    """Start, end and score of each stage, for the script."""
    stages = [*candidate.steps, _end(candidate)]
    return ";".join(f"{step.start:.3f},{step.end:.3f},{_score(label, step):.2f}" for step in stages)


def _score(label: str, step: Step) -> float:
    if step.label_probs is not None:
        return step.label_probs.get(label, 0.0)
    return 1.0 if step.score is None else step.score


def _end(candidate: Candidate) -> Step:
    """The final span and label probabilities as the last stage."""
    return Step(_END, candidate.span.start, candidate.span.end, None, candidate.label_probs)


def _stages(label: str, candidate: Candidate) -> str:
    """A table of all stages; the last row is the prediction."""
    lines = "".join(
        f"<tr><th scope=row>{safe(step.name)}</th><td>{_boundaries(step)}</td>"
        f"<td>{'' if step.score is None else f'{step.score:.2f}'}</td>"
        f"<td>{_probabilities(label, step.label_probs)}</td></tr>"
        for step in [*candidate.steps, _end(candidate)]
    )
    return (
        '<table class="stages"><thead><tr><th scope=col>stage</th><th scope=col>boundaries</th>'
        "<th scope=col>score</th><th scope=col>label probabilities</th></tr></thead>"
        f"{lines}</table>"
    )


def _boundaries(step: Step) -> str:
    whole = step.name == _END
    return f"({step.start:.0f}, {step.end - 1:.0f})" if whole else pair(step)


def _probabilities(label: str, probs: LabelProbs | None) -> str:
    """The most probable labels as small bars, always including the label of the row."""
    if probs is None:
        return ""
    ranked = sorted(probs.items(), key=lambda item: -item[1])
    shown = [item for item in ranked[:_SHOWN_LABELS] if item[1] >= _LEAST_SHOWN]
    if label in probs and all(name != label for name, _ in shown):
        shown.append((label, probs[label]))
    return "".join(
        f'<span class="{"prob own" if name == label else "prob"}" style="--p:{prob:.3f}">'
        f"<bdi>{safe(NO_ENTITY if name is None else name)}</bdi> {prob:.2f}</span>"
        for name, prob in shown
    )


def _shortened(names: Sequence[str]) -> list[str]:
    """Names for the slider; of many stages only the first and the last are named."""
    if len(names) <= _MANY_STAGES:
        return list(names)
    return [name if i in {0, len(names) - 1} else "·" for i, name in enumerate(names)]
