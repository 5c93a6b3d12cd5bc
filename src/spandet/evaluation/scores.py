"""Precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

from spandet.rendering.tables import Table

SCORE_COLUMNS = ("P", "R", "F1", "gold", "predicted")


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1 (0 to 1; 0.0 where undefined) with the counts behind them."""

    precision: float
    recall: float
    f1: float
    correct: int
    """Predicted entities that gold has: the numerator of precision."""
    predicted: int
    found: int
    """Gold entities that were predicted: the numerator of recall. Differs from `correct` only where
    each side is grouped by its own structure (nested, flat, depths)."""
    gold: int

    @property
    def support(self) -> int:
        """The number of gold entities."""
        return self.gold

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "support": self.support,
            "correct": self.correct,
            "predicted": self.predicted,
            "found": self.found,
            "gold": self.gold,
        }


def share(part: float, whole: float) -> float:
    """The quotient, or 0.0 if `whole` is 0."""
    return part / whole if whole else 0.0


def score(*, correct: int, predicted: int, gold: int, found: int | None = None) -> Score:
    """The score for some counts; `found` defaults to `correct`."""
    found = correct if found is None else found
    precision, recall = share(correct, predicted), share(found, gold)
    f1 = share(2 * precision * recall, precision + recall)
    return Score(precision, recall, f1, correct, predicted, found, gold)


def macro(scores: Collection[Score]) -> Score:
    """The unweighted mean of precision, recall and F1; the counts are summed."""
    number = len(scores)
    # fsum is exact, so that the order of the labels does not change the last digit.
    return Score(
        precision=share(fsum(one.precision for one in scores), number),
        recall=share(fsum(one.recall for one in scores), number),
        f1=share(fsum(one.f1 for one in scores), number),
        correct=sum(one.correct for one in scores),
        predicted=sum(one.predicted for one in scores),
        found=sum(one.found for one in scores),
        gold=sum(one.gold for one in scores),
    )


def score_table(
    title: str,
    rows: Iterable[tuple[str, Score]],
    *,
    note: str = "",
    only: Literal["html", "text"] | None = None,
) -> Table:
    """A table with one named score per row."""
    return Table(
        title=title,
        columns=("", *SCORE_COLUMNS),
        rows=tuple(
            (name, one.precision, one.recall, one.f1, one.gold, one.predicted) for name, one in rows
        ),
        bar=3,
        note=note,
        only=only,
    )
