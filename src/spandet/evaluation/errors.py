"""Errors by cause; each error has exactly one cause, the first that applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from spandet.evaluation.items import Item, ItemSpan, Side
from spandet.evaluation.pairs import Pair
from spandet.evaluation.structure import crosses, crossing

WRONG_CAUSES = ("label", "boundary", "crossing", "spurious")
"""Causes of false positives."""
MISSED_CAUSES = ("label", "boundary", "crossing", "missed")
"""Causes of false negatives."""
EXAMPLES = 5
"""Number of examples per cause and side."""

Borders: TypeAlias = tuple[str, int, int]
"""Label, first word, word after the last word."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The text and the label of an entity."""

    text: str
    label: str

    def to_json(self) -> dict[str, str]:
        """A JSON object."""
        return {"text": self.text, "label": self.label}


@dataclass(frozen=True, slots=True)
class Example:
    """One error, with the gold and the predicted entity."""

    kind: str
    """`false positive` or `false negative`."""
    cause: str
    document: str
    gold: Mention | None
    predicted: Mention | None

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "kind": self.kind,
            "cause": self.cause,
            "document": self.document,
            "gold": self.gold.to_json() if self.gold else None,
            "predicted": self.predicted.to_json() if self.predicted else None,
        }


@dataclass(frozen=True, slots=True)
class Errors:
    """False positives and false negatives, counted by cause, with examples."""

    false_positives: Mapping[str, int]
    false_negatives: Mapping[str, int]
    confusion: Mapping[tuple[str, str], int]
    """(gold label, predicted label) of correct spans: each missed label with each wrong label of
    the same span; correct labels are not counted."""
    examples: tuple[Example, ...]

    def to_json(self) -> dict[str, Any]:
        """Counts by cause; `confusion` by gold label, then by predicted label."""
        confusion: dict[str, dict[str, int]] = {}
        for (gold, predicted), number in self.confusion.items():
            confusion.setdefault(gold, {})[predicted] = number
        return {
            "false_positives": dict(self.false_positives),
            "false_negatives": dict(self.false_negatives),
            "confusion": confusion,
            "examples": [example.to_json() for example in self.examples],
        }


class ErrorCounter:
    """Counts the errors of one document after another."""

    def __init__(self) -> None:
        self.wrong = dict.fromkeys(WRONG_CAUSES, 0)
        self.missed = dict.fromkeys(MISSED_CAUSES, 0)
        self.confusion: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], list[Example]] = {
            **{("false positive", cause): [] for cause in WRONG_CAUSES},
            **{("false negative", cause): [] for cause in MISSED_CAUSES},
        }

    def add(self, pair: Pair, gold: Side, predicted: Side) -> None:
        """Count the errors of one document."""
        wrong = causes_of(predicted, gold, pair.gold, otherwise="spurious")
        missed = causes_of(gold, predicted, pair.predicted, otherwise="missed")
        for cause in wrong.values():
            self.wrong[cause] += 1
        for cause in missed.values():
            self.missed[cause] += 1
        if "label" in missed.values():
            self.confusion.update(confusions(wrong, missed))
        self._add_examples(pair, wrong, gold, "false positive")
        self._add_examples(pair, missed, predicted, "false negative")

    def _add_examples(
        self, pair: Pair, causes: Mapping[Item, str], others: Side, kind: str
    ) -> None:
        for item, cause in causes.items():
            kept = self.examples[kind, cause]
            if len(kept) < EXAMPLES:
                kept.append(_example(pair, item, cause, others, kind))

    def result(self) -> Errors:
        """The counts so far; the most frequent confusions first."""
        return Errors(
            false_positives=dict(self.wrong),
            false_negatives=dict(self.missed),
            confusion=dict(sorted(self.confusion.items(), key=lambda one: (-one[1], one[0]))),
            examples=tuple(chain.from_iterable(self.examples.values())),
        )


def causes_of(side: Side, others: Side, correct: set[Item], *, otherwise: str) -> dict[Item, str]:
    """The cause of each item of a side that is not correct, that is, not among the others."""
    spans = set(others.spans)
    borders = set(zip(others.labels, others.firsts, others.afters, strict=True))
    causes = {}
    unexplained = []
    for item, first, after in zip(side.ordered, side.firsts, side.afters, strict=True):
        if item in correct:
            continue
        if item[:3] in spans:
            causes[item] = "label"
        elif _is_near(item[3], first, after, borders):
            causes[item] = "boundary"
        else:
            causes[item] = otherwise
            unexplained.append(item)
    if unexplained:
        crossed = crossing({item[:2] for item in unexplained}, set(others.envelopes))
        causes.update((item, "crossing") for item in unexplained if item[:2] in crossed)
    return causes


def _is_near(label: str, first: int, after: int, borders: Container[Borders]) -> bool:
    """Whether another item has the same label and both borders at most one word away."""
    for other_first in (first, first - 1, first + 1):
        for other_after in (after, after - 1, after + 1):
            if (label, other_first, other_after) in borders:
                return True
    return False


def confusions(wrong: Collection[Item], missed: Collection[Item]) -> Iterator[tuple[str, str]]:
    """(gold label, predicted label) for each missed and each wrong item of the same span."""
    missed_labels: dict[ItemSpan, list[str]] = {}
    for item in missed:
        missed_labels.setdefault(item[:3], []).append(item[3])
    for item in wrong:
        for gold_label in missed_labels.get(item[:3], ()):
            yield gold_label, item[3]


def _example(pair: Pair, item: Item, cause: str, others: Side, kind: str) -> Example:
    counterpart = next(
        (other for other in others.ordered if _explains(cause, item, other, pair)), None
    )
    own = Mention(pair.text_of(item), item[3])
    other = None if counterpart is None else Mention(pair.text_of(counterpart), counterpart[3])
    gold, predicted = (other, own) if kind == "false positive" else (own, other)
    return Example(kind, cause, pair.name, gold, predicted)


def _explains(cause: str, item: Item, other: Item, pair: Pair) -> bool:
    """Whether the other entity is the reason for this cause."""
    if cause == "label":
        return item[:3] == other[:3]
    if cause == "boundary":
        one = Side([item, other], pair.words)
        (_, first, after), borders = zip(one.labels, one.firsts, one.afters, strict=True)
        return item[3] == other[3] and _is_near(item[3], first, after, {borders})
    return cause == "crossing" and crosses(item[:2], other[:2])
