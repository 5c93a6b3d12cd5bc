"""Documents as one self-contained page: layered bars, a legend that filters, details on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from spandet.rendering.html import html_page
from spandet.text import Document
from spandet.viewing.blocks import blocks
from spandet.viewing.colors import LabelNumbers
from spandet.viewing.labels import label_rules, symbol_rules
from spandet.viewing.markup import Block, mark_up, safe
from spandet.viewing.verdicts import Judged, Verdict, judge


def to_html(documents: Iterable[Document], *, title: str) -> str:
    """A page of documents with their entities as bars under the words."""
    numbers = LabelNumbers()
    counts: Counter[str] = Counter()
    articles: list[str] = []
    sentences = 0
    for document in documents:
        counts.update(entity.label for entity in document.entities)
        entities = [Judged(entity) for entity in document.entities]
        shown = mark_up(document.text, blocks(document), entities, numbers)
        paragraphs = [_paragraph(block, "all") for block in shown]
        sentences += len(paragraphs)
        articles.append(_article(len(articles) + 1, document, paragraphs))
    total = counts.total()
    summary = (
        f"{_counted(len(articles), 'document', 'documents')} · "
        f"{_counted(sentences, 'sentence', 'sentences')} · "
        f"{_counted(total, 'entity', 'entities')}"
    )
    notes = {label: f"{count:,}" for label, count in counts.items()}
    return _page(title, summary, _filters(numbers, notes), articles, numbers)


def comparison_to_html(pairs: Iterable[tuple[Document, Document]], *, title: str) -> str:
    """A page of texts side by side: what should have been found, and what was."""
    numbers = LabelNumbers()
    counts: Counter[tuple[str, Verdict]] = Counter()
    articles: list[str] = []
    flawed = 0
    for gold, predicted in pairs:
        comparison = judge(gold, predicted)
        counts.update(comparison.counts)
        own = blocks(gold)
        left = mark_up(gold.text, own, comparison.gold, numbers)
        right = mark_up(gold.text, own, comparison.predicted, numbers)
        rows = [
            f'<div class="row">{_paragraph(one, "gold")}{_paragraph(other, "predicted")}</div>'
            for one, other in zip(left, right, strict=True)
        ]
        flawless = all(verdict is Verdict.HIT for _, verdict in comparison.counts)
        flawed += not flawless
        kind = "flawless" if flawless else "flawed"
        articles.append(_article(len(articles) + 1, gold, rows, kind))
    summary = " ".join(
        f'<span class="verdict {verdict.value}">{verdict.counted(count)}</span>'
        for verdict, count in _by_verdict(counts, numbers.labels()).items()
    )
    notes = {
        label: " ".join(
            f"{verdict.symbol}{count:,}" for verdict, count in _by_verdict(counts, [label]).items()
        )
        for label in numbers.labels()
    }
    only = (
        f'<label class="only"><input type="checkbox" id="errors"> only the {flawed:,} of '
        f"{_counted(len(articles), 'document', 'documents')} with errors</label>"
    )
    heads = '<div class="row heads"><span>gold</span><span>predicted</span></div>'
    return _page(title, summary, only + _filters(numbers, notes) + heads, articles, numbers)


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _by_verdict(
    counts: Mapping[tuple[str, Verdict], int], labels: Sequence[str]
) -> dict[Verdict, int]:
    return {
        verdict: sum(counts.get((label, verdict), 0) for label in labels) for verdict in Verdict
    }


def _paragraph(block: Block, side: str) -> str:
    room = f' class="joined" style="--n:{block.room}"' if block.room else ""
    return f'<p dir="auto" data-side="{side}"{room}>{block.html}</p>'


def _article(number: int, document: Document, rows: Iterable[str], kind: str = "plain") -> str:
    heading = "" if document.id is None else f"<h2><bdi>{safe(document.id)}</bdi></h2>"
    return (
        f'<article class="{kind}" data-number="{number}">{heading}'
        f'<div class="text" lang="">{"".join(rows)}</div></article>'
    )


def _filters(numbers: LabelNumbers, notes: Mapping[str, str]) -> str:
    """The legend: a box per label, in the order of the labels' numbers."""
    chips = "".join(
        f'<label class="chip k{number}"><input type="checkbox" checked value="{safe(label)}">'
        f"<bdi>{safe(label)}</bdi> <small>{notes[label]}</small></label> "
        for number, label in enumerate(numbers.labels())
    )
    return (
        f'<fieldset id="labels"><legend>Labels</legend>{chips}'
        '<button type="button" id="all">all</button> '
        '<button type="button" id="none">none</button></fieldset>'
    )


def _page(
    title: str, summary: str, filters: str, articles: Iterable[str], numbers: LabelNumbers
) -> str:
    rules = "".join(label_rules(number, label) for number, label in enumerate(numbers.labels()))
    shown = "\n".join(articles)
    return html_page(
        title=title,
        body=(
            f'<p class="soft summary">{summary}</p>\n<form id="filters">{filters}</form>\n'
            f'<p class="soft hint">Point at an entity for its details, or tab to the first one and '
            f"use the arrow keys.</p>\n<main>\n{shown}\n</main>\n"
            '<div id="tip" role="status" hidden></div>'
        ),
        style=_resource("view.css") + symbol_rules() + rules,
        script=_resource("view.js"),
    )


def _resource(name: str) -> str:
    return files("spandet.viewing").joinpath(name).read_text(encoding="utf-8")
