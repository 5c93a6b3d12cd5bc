"""Documents as a self-contained HTML page: layered bars, label filters, tooltips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from spandet.rendering.html import html_page
from spandet.text import Document
from spandet.viewing.labels import LabelNumbers, label_rules, symbol_rules
from spandet.viewing.layout import blocks
from spandet.viewing.markup import Block, mark_up, safe
from spandet.viewing.outcomes import Outcome, ShownEntity, compare_entities


def to_html(documents: Iterable[Document], *, title: str) -> str:
    """A page of documents with their entities as bars below the words."""
    numbers = LabelNumbers()
    counts: Counter[str] = Counter()
    articles: list[str] = []
    sentences = 0
    for document in documents:
        counts.update(entity.label for entity in document.entities)
        entities = [ShownEntity(entity) for entity in document.entities]
        shown = mark_up(document.text, blocks(document), entities, numbers)
        paragraphs = [_paragraph(block, "all") for block in shown]
        sentences += len(paragraphs)
        articles.append(_article(len(articles) + 1, document, paragraphs))
    total = counts.total()
    summary = (
        f"{counted(len(articles), 'document', 'documents')} · "
        f"{counted(sentences, 'sentence', 'sentences')} · "
        f"{counted(total, 'entity', 'entities')}"
    )
    notes = {label: f"{count:,}" for label, count in counts.items()}
    return _page(title, summary, _filters(numbers, notes), articles, numbers)


def comparison_to_html(pairs: Iterable[tuple[Document, Document]], *, title: str) -> str:
    """A page of gold and predicted entities side by side."""
    numbers = LabelNumbers()
    counts: Counter[tuple[str, Outcome]] = Counter()
    articles: list[str] = []
    flawed = 0
    for gold, predicted in pairs:
        comparison = compare_entities(gold, predicted)
        counts.update(comparison.counts)
        own = blocks(gold)
        left = mark_up(gold.text, own, comparison.gold, numbers)
        right = mark_up(gold.text, own, comparison.predicted, numbers)
        rows = [
            f'<div class="row">{_paragraph(one, "gold")}{_paragraph(other, "predicted")}</div>'
            for one, other in zip(left, right, strict=True)
        ]
        flawless = all(outcome is Outcome.HIT for _, outcome in comparison.counts)
        flawed += not flawless
        kind = "flawless" if flawless else "flawed"
        articles.append(_article(len(articles) + 1, gold, rows, kind))
    summary = " ".join(
        f'<span class="outcome {outcome.value}">{outcome.counted(count)}</span>'
        for outcome, count in _by_outcome(counts, numbers.labels()).items()
    )
    notes = {
        label: " ".join(
            f"{outcome.symbol}{count:,}" for outcome, count in _by_outcome(counts, [label]).items()
        )
        for label in numbers.labels()
    }
    only = (
        f'<label class="only"><input type="checkbox" id="errors"> only the {flawed:,} of '
        f"{counted(len(articles), 'document', 'documents')} with errors</label>"
    )
    heads = '<div class="row heads"><span>gold</span><span>predicted</span></div>'
    return _page(title, summary, only + _filters(numbers, notes) + heads, articles, numbers)


def counted(count: int, one: str, more: str) -> str:
    """A number with the singular or the plural of a noun."""
    return f"{count:,} {one if count == 1 else more}"


def _by_outcome(
    counts: Mapping[tuple[str, Outcome], int], labels: Sequence[str]
) -> dict[Outcome, int]:
    return {
        outcome: sum(counts.get((label, outcome), 0) for label in labels) for outcome in Outcome
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
    """A check box per label, in the order of the label numbers."""
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
            f'<p class="soft hint">Point at an entity for its details, or press Tab for the first '
            f"entity and the arrow keys for the others.</p>\n<main>\n{shown}\n</main>\n"
            '<div id="tip" role="status" hidden></div>'
        ),
        style=resource("view.css") + symbol_rules() + rules,
        script=resource("view.js"),
    )


def resource(name: str) -> str:
    """The text of a style sheet or script of this package."""
    return files("spandet.viewing").joinpath(name).read_text(encoding="utf-8")
