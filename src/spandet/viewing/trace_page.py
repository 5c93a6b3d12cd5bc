"""Traces as one self-contained page: bars under the words, and a slider that moves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import pairwise

from rich.cells import cell_len

from spandet.rendering.html import html_page
from spandet.text import Sentence
from spandet.viewing.case_study import NO_ENTITY, believed, gap, pair, triple, way
from spandet.viewing.colors import LabelNumbers
from spandet.viewing.labels import label_rules
from spandet.viewing.markup import safe
from spandet.viewing.trace_rows import Row, Table, table_of
from spandet.viewing.traces import Candidate, LabelProbs, Step, TracedDocument, TracedSentence
from spandet.viewing.verdicts import Verdict

_END = "predicted"
_MARKS = {None: "", Verdict.HIT: "✓", Verdict.FALSE_ALARM: "✗", Verdict.MISS: "○"}
_NAMES = {Verdict.HIT: "right", Verdict.FALSE_ALARM: "wrong", Verdict.MISS: "missed"}
_SHOWN_LABELS = 5
_LEAST_SHOWN = 0.005
_LONGEST_RUN = 24
_MANY_STAGES = 6


def trace_to_html(documents: Iterable[TracedDocument], *, title: str) -> str:
    """A page of traced documents; a slider and a button lead through the stages."""
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
        style=_resource("trace.css") + rules,
        script=_resource("trace.js"),
    )


class _Writer:
    """Writes one article after the other, and counts what it has written."""

    def __init__(self) -> None:
        self.numbers = LabelNumbers()
        self.stages: tuple[str, ...] = ()
        self.verdicts: Counter[Verdict] = Counter()
        self.documents = self.sentences = self.flawed = self.found = 0
        self.judged = False

    def article(self, traced: TracedDocument) -> str:
        """One document."""
        self.documents += 1
        self.stages = self.stages or traced.stages
        self.verdicts[Verdict.MISS] += len(traced.misfits)
        name = traced.document.id
        heading = "" if name is None else f"<h2><bdi>{safe(name)}</bdi></h2>"
        shown = "".join(
            self.sentence(sentence, traced.document.text)
            for sentence in traced.sentences
            if sentence.sentence.words
        )
        misfits = "".join(
            f'<p class="misfit"><b>○</b> <bdi>{safe(traced.document.text_of(entity))}</bdi> '
            f"(<bdi>{safe(entity.label)}</bdi>) missed: it does not begin and end at word borders "
            "of one sentence</p>"
            for entity in traced.misfits
        )
        kind = "flawless" if traced.is_flawless else "flawed"
        return f'<article class="{kind}">{heading}{shown}{misfits}</article>'

    def sentence(self, traced: TracedSentence, text: str) -> str:
        """Words with room for their bars, and below them the case study."""
        self.sentences += 1
        self.flawed += not traced.is_flawless
        self.found += len(traced.found)
        self.judged |= traced.gold is not None
        table = table_of(traced)
        kind = "flawless" if traced.is_flawless else "flawed"
        rows = "".join(
            self.row(row, layer) for row, layer in zip(table.rows, table.layers, strict=True)
        )
        ways = f'<ol class="ways">{rows}</ol>' if rows else '<p class="none">nothing found</p>'
        words = _words(traced.sentence, text, table)
        return (
            f'<section class="{kind}" data-number="{self.sentences}">'
            f'<p class="words" dir="auto" lang="">{words}</p>{ways}</section>'
        )

    def row(self, row: Row, layer: int) -> str:
        """One entity: a line of the case study that opens to a table of its stages."""
        number = self.numbers[row.entity.label]
        names = f"k{number}"
        if row.verdict is not None:
            self.verdicts[row.verdict] += 1
            names += f" {row.verdict.value}"
        data = f'data-layer="{layer}" data-name="{safe(row.entity.label)}"'
        if row.verdict is Verdict.MISS:
            gold = ";".join(f"{piece.start},{piece.end}" for piece in row.entity.pieces)
            data += f' data-gold="{gold}"'
        if not row.candidates:
            return f'<li class="{names}" {data}><p>{_case(row)}</p></li>'
        label = row.entity.label
        moves = "|".join(_moves(label, candidate) for candidate in row.candidates)
        data += f' data-steps="{moves}"'
        stages = "".join(_stages(label, candidate) for candidate in row.candidates)
        return (
            f'<li class="{names}" {data}><details><summary>{_case(row)}</summary>'
            f"{stages}</details></li>"
        )

    def summary(self) -> str:
        """What there is, in numbers."""
        counts = [
            _counted(self.documents, "document", "documents"),
            _counted(self.sentences, "sentence", "sentences"),
            f"{self.found:,} found",
        ]
        verdicts = "".join(
            f' · <span class="mark {verdict.value}">{_MARKS[verdict]}</span> '
            f"{self.verdicts[verdict]:,} {name}"
            for verdict, name in _NAMES.items()
            if self.judged
        )
        return " · ".join(counts) + verdicts

    def controls(self) -> str:
        """Play, the slider, and the names of the stages to jump to."""
        names = (*self.stages, _END)
        only = (
            '<label class="only"><input type="checkbox" id="errors"> only the '
            f"{self.flawed:,} of {_counted(self.sentences, 'sentence', 'sentences')} with errors"
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
            f"{slider if self.stages else ''}{only if self.judged else ''}</form>"
            '<p class="soft hint">Play or drag to watch the boundaries settle; the arrow keys go '
            "from stage to stage. Open a line, or point at a bar, for what was believed. Both "
            "numbers of a span are words: the first and the last.</p>"
        )


def _words(sentence: Sentence, text: str, table: Table) -> str:
    """The words, each with room for its bars; those that no space parts stay on one line."""
    ends = [start + len(word) for start, word in zip(sentence.starts, sentence.words, strict=True)]
    gaps = [gap(text[end:start]) for end, start in zip(ends, sentence.starts[1:], strict=False)]
    parts = []
    for run in _runs(sentence.words, gaps):
        inside = "".join(
            f'<span class="w" style="--n:{table.rooms[i]}">{safe(sentence.words[i])}</span>'
            for i in run
        )
        parts.append(inside if len(run) == 1 else f'<span class="run">{inside}</span>')
        parts.append(safe(gaps[run[-1]]) if run[-1] < len(gaps) else "")
    return "".join(parts)


def _runs(words: Sequence[str], gaps: Sequence[str]) -> Iterator[list[int]]:
    """Words that belong on one line: punctuation with its neighbour, but no run of Chinese."""
    run, length = [0], len(words[0])
    for i, (before, after) in enumerate(pairwise(words), start=1):
        narrow = cell_len(before[-1:]) < 2 and cell_len(after[:1]) < 2
        if gaps[i - 1] or not narrow or length + len(after) > _LONGEST_RUN:
            yield run
            run, length = [], 0
        run.append(i)
        length += len(after)
    yield run


def _case(row: Row) -> str:
    """The line of the case study."""
    mark = f'<b class="mark">{_MARKS[row.verdict]}</b> ' if row.verdict else ""
    own = f'<span class="triple">{safe(triple(row.entity.pieces, row.entity.label))}</span>'
    ways = [_together(way(candidate.steps)) for candidate in row.candidates]
    if row.verdict is not Verdict.MISS and len(ways) < 2:
        note = f'<span class="note">{safe(row.note)}</span>' if row.note else ""
        return f'{mark}{own}<span class="way">{"".join(ways)}</span>{note}'
    missed = row.verdict is Verdict.MISS
    line = f"{mark}{own}{' missed:' if missed else ''} {safe(row.note)}"
    name = "nearest" if missed else "piece"
    for candidate, stages in zip(row.candidates, ways, strict=True):
        place = _together(triple([candidate.span], believed(candidate)))
        line += f'<span class="note way">{name} {place}{stages}</span>'
    return line


def _together(text: str) -> str:
    """Lines break before an arrow only."""
    return safe(text).replace(", ", ",\u00a0").replace("← ", "←\u00a0")


def _moves(label: str, candidate: Candidate) -> str:
    """Start, end and how much was believed at each stage, for the script."""
    stages = [*candidate.steps, _end(candidate)]
    return ";".join(
        f"{step.start:.3f},{step.end:.3f},{_belief(label, step):.2f}" for step in stages
    )


def _belief(label: str, step: Step) -> float:
    if step.label_probs is not None:
        return step.label_probs.get(label, 0.0)
    return 1.0 if step.score is None else step.score


def _end(candidate: Candidate) -> Step:
    """What a candidate came to, as the last stage."""
    return Step(_END, candidate.span.start, candidate.span.end, None, candidate.label_probs)


def _stages(label: str, candidate: Candidate) -> str:
    """A table of all stages; the last line is what came of them."""
    lines = "".join(
        f"<tr><th scope=row>{safe(step.name)}</th><td>{_boundaries(step)}</td>"
        f"<td>{'' if step.score is None else f'{step.score:.2f}'}</td>"
        f"<td>{_chances(label, step.label_probs)}</td></tr>"
        for step in [*candidate.steps, _end(candidate)]
    )
    return (
        '<table class="stages"><thead><tr><th scope=col>stage</th><th scope=col>boundaries</th>'
        f"<th scope=col>score</th><th scope=col>taken for</th></tr></thead>{lines}</table>"
    )


def _boundaries(step: Step) -> str:
    whole = step.name == _END
    return f"({step.start:.0f}, {step.end - 1:.0f})" if whole else pair(step)


def _chances(label: str, probs: LabelProbs | None) -> str:
    """The most probable labels as little bars, always with the one that the row is about."""
    if probs is None:
        return ""
    ranked = sorted(probs.items(), key=lambda item: -item[1])
    shown = [item for item in ranked[:_SHOWN_LABELS] if item[1] >= _LEAST_SHOWN]
    if label in probs and all(name != label for name, _ in shown):
        shown.append((label, probs[label]))
    return "".join(
        f'<span class="{"chance own" if name == label else "chance"}" style="--p:{prob:.3f}">'
        f"<bdi>{safe(NO_ENTITY if name is None else name)}</bdi> {prob:.2f}</span>"
        for name, prob in shown
    )


def _shortened(names: Sequence[str]) -> list[str]:
    """Names for a scale: of many stages only the first and the last have room for theirs."""
    if len(names) <= _MANY_STAGES:
        return list(names)
    return [name if i in {0, len(names) - 1} else "·" for i, name in enumerate(names)]


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _resource(name: str) -> str:
    return files("spandet.viewing").joinpath(name).read_text(encoding="utf-8")
