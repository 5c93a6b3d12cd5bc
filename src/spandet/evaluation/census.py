"""Every error has exactly one cause: the first of those below that applies."""

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
"""Why a prediction is wrong."""
LOST_CAUSES = ("label", "boundary", "crossing", "missed")
"""Why a gold entity is not found."""
EXAMPLES = 5
"""Kept per cause and side."""

Borders: TypeAlias = tuple[str, int, int]
"""Label, first word, word after the last."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as a reader wants to see it."""

    text: str
    label: str

    def to_json(self) -> dict[str, str]:
        """Text and label."""
        return {"text": self.text, "label": self.label}


@dataclass(frozen=True, slots=True)
class Example:
    """One error: what gold has, what was predicted."""

    kind: str
    """False positive or false negative."""
    cause: str
    document: str
    gold: Mention | None
    predicted: Mention | None

    def to_json(self) -> dict[str, Any]:
        """Plain words."""
        return {
            "kind": self.kind,
            "cause": self.cause,
            "document": self.document,
            "gold": self.gold.to_json() if self.gold else None,
            "predicted": self.predicted.to_json() if self.predicted else None,
        }


@dataclass(frozen=True, slots=True)
class Errors:
    """The census: why predictions are wrong and gold entities are not found."""

    false_positives: Mapping[str, int]
    false_negatives: Mapping[str, int]
    confusion: Mapping[tuple[str, str], int]
    """(gold label, predicted label) of right spans: each label that was not found with each label
    that is wrong there; correct labels are not in it."""
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


class Census:
    """Collects the errors of one document after another."""

    def __init__(self) -> None:
        self.wrong = dict.fromkeys(WRONG_CAUSES, 0)
        self.lost = dict.fromkeys(LOST_CAUSES, 0)
        self.confusion: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], list[Example]] = {
            **{("false positive", cause): [] for cause in WRONG_CAUSES},
            **{("false negative", cause): [] for cause in LOST_CAUSES},
        }

    def add(self, pair: Pair, gold: Side, predicted: Side) -> None:
        """Count the wrong predictions of a document and the gold entities that were not found."""
        wrong = causes_of(predicted, gold, pair.gold, otherwise="spurious")
        lost = causes_of(gold, predicted, pair.predicted, otherwise="missed")
        for cause in wrong.values():
            self.wrong[cause] += 1
        for cause in lost.values():
            self.lost[cause] += 1
        if "label" in lost.values():
            self.confusion.update(confusions(wrong, lost))
        self._illustrate(pair, wrong, gold, "false positive")
        self._illustrate(pair, lost, predicted, "false negative")

    def _illustrate(self, pair: Pair, causes: Mapping[Item, str], others: Side, kind: str) -> None:
        for item, cause in causes.items():
            kept = self.examples[kind, cause]
            if len(kept) < EXAMPLES:
                kept.append(_example(pair, item, cause, others, kind))

    def result(self) -> Errors:
        """What was counted so far, the most frequent confusion first."""
        return Errors(
            false_positives=dict(self.wrong),
            false_negatives=dict(self.lost),
            confusion=dict(sorted(self.confusion.items(), key=lambda one: (-one[1], one[0]))),
            examples=tuple(chain.from_iterable(self.examples.values())),
        )


def causes_of(side: Side, others: Side, right: set[Item], *, otherwise: str) -> dict[Item, str]:
    """The cause of each item of a side that is not right, that is, not among the others."""
    spans = set(others.spans)
    borders = set(zip(others.labels, others.firsts, others.afters, strict=True))
    causes = {}
    far = []
    for item, first, after in zip(side.ordered, side.firsts, side.afters, strict=True):
        if item in right:
            continue
        if item[:3] in spans:
            causes[item] = "label"
        elif _is_near(item[3], first, after, borders):
            causes[item] = "boundary"
        else:
            causes[item] = otherwise
            far.append(item)
    if far:
        crossed = crossing({item[:2] for item in far}, set(others.envelopes))
        causes.update((item, "crossing") for item in far if item[:2] in crossed)
    return causes


def _is_near(label: str, first: int, after: int, borders: Container[Borders]) -> bool:
    """Does another item have the label and both borders at most a word away?"""
    for other_first in (first, first - 1, first + 1):
        for other_after in (after, after - 1, after + 1):
            if (label, other_first, other_after) in borders:
                return True
    return False


def confusions(wrong: Collection[Item], lost: Collection[Item]) -> Iterator[tuple[str, str]]:
    """(gold label, predicted label) for each lost and each wrong item of the same span."""
    lost_labels: dict[ItemSpan, list[str]] = {}
    for item in lost:
        lost_labels.setdefault(item[:3], []).append(item[3])
    for item in wrong:
        for gold_label in lost_labels.get(item[:3], ()):
            yield gold_label, item[3]


def _example(pair: Pair, item: Item, cause: str, others: Side, kind: str) -> Example:
    partner = next((other for other in others.ordered if _explains(cause, item, other, pair)), None)
    own = Mention(pair.text_of(item), item[3])
    its = None if partner is None else Mention(pair.text_of(partner), partner[3])
    gold, predicted = (its, own) if kind == "false positive" else (own, its)
    return Example(kind, cause, pair.name, gold, predicted)


def _explains(cause: str, item: Item, other: Item, pair: Pair) -> bool:
    """Is this other entity a reason for the cause?"""
    if cause == "label":
        return item[:3] == other[:3]
    if cause == "boundary":
        one = Side([item, other], pair.words)
        (_, first, after), borders = zip(one.labels, one.firsts, one.afters, strict=True)
        return item[3] == other[3] and _is_near(item[3], first, after, {borders})
    return cause == "crossing" and crosses(item[:2], other[:2])
