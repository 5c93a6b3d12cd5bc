"""Comparison of two systems on the same documents by a paired bootstrap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from spandet.evaluation.alignment import aligned
from spandet.evaluation.bootstrap import (
    Interval,
    check_resamples,
    f1_of,
    middle,
    resampled,
)
from spandet.evaluation.pairs import Pair, pair
from spandet.evaluation.scores import Score, score, score_table
from spandet.rendering.tables import Table, Tabular
from spandet.text import Document


@dataclass(frozen=True, slots=True)
class Draws:
    """The paired bootstrap of the difference in F1."""

    interval: Interval
    p_value: float
    wins_a: int
    """Resamples in which A has the higher F1."""
    wins_b: int
    ties: int


@dataclass(frozen=True)
class Comparison(Tabular):
    """The scores of two systems, and whether they differ."""

    documents: int
    a: Score
    b: Score
    draws: Draws | None
    """None for fewer than two documents or no resamples."""
    resamples: int

    @property
    def delta(self) -> float:
        """B's micro F1 minus A's."""
        return self.b.f1 - self.a.f1

    @property
    def title(self) -> str:
        """The difference and its p-value."""
        if self.draws is None:
            return f"B − A: {100 * self.delta:+.2f} F1"
        return f"B − A: {100 * self.delta:+.2f} F1, p = {self.draws.p_value:.4f}"

    def to_json(self) -> dict[str, Any]:
        """A JSON object; values that need resampling are null without it."""
        draws = self.draws
        return {
            "documents": self.documents,
            "a": self.a.to_json(),
            "b": self.b.to_json(),
            "delta": self.delta,
            "interval": draws.interval.to_json() if draws else None,
            "p_value": draws.p_value if draws else None,
            "wins": {"a": draws.wins_a, "b": draws.wins_b, "ties": draws.ties} if draws else None,
            "resamples": self.resamples,
        }

    def tables(self) -> Iterator[Table]:
        """One table with a row per system."""
        notes = [f"{self.documents:,} documents."]
        if self.draws:
            interval = self.draws.interval
            notes.append(
                f"95 % interval of the difference: {100 * interval.low:+.2f} to "
                f"{100 * interval.high:+.2f}. In {self.resamples:,} resamples of documents, A wins "
                f"{self.draws.wins_a:,}, B wins {self.draws.wins_b:,}, ties {self.draws.ties:,}."
            )
        yield score_table("Systems", [("A", self.a), ("B", self.b)], note=" ".join(notes))


def compare(
    gold: Iterable[Document],
    a: Iterable[Document],
    b: Iterable[Document],
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare two predictions of the same gold by a paired bootstrap of their micro F1.

    Raises:
        MismatchError: documents cannot be paired, or their texts differ.
    """
    check_resamples(resamples)
    counts: Counter[tuple[int, ...]] = Counter()
    rows = aligned({"gold": gold, "system A": a, "system B": b})
    for number, (document, of_a, of_b) in enumerate(rows, 1):
        pair_a = pair(document, of_a, number, side="system A")
        pair_b = pair(document, of_b, number, side="system B")
        counts[*_triple(pair_a), *_triple(pair_b)] += 1
    sums = [sum(row[i] * times for row, times in counts.items()) for i in range(6)]
    enough = counts.total() > 1 and resamples > 0
    return Comparison(
        documents=counts.total(),
        a=score(correct=sums[0], predicted=sums[1], gold=sums[2]),
        b=score(correct=sums[3], predicted=sums[4], gold=sums[5]),
        draws=_draws(counts, resamples, seed) if enough else None,
        resamples=resamples,
    )


def _triple(pair: Pair) -> tuple[int, int, int]:
    return len(pair.gold & pair.predicted), len(pair.predicted), len(pair.gold)


def _draws(counts: Counter[tuple[int, ...]], resamples: int, seed: int) -> Draws:
    sums = resampled(counts, resamples=resamples, seed=seed).T
    differences = f1_of(*sums[3:]) - f1_of(*sums[:3])
    wins_a, wins_b = int((differences < 0).sum()), int((differences > 0).sum())
    ties = resamples - wins_a - wins_b
    # Two-sided: twice the smaller tail, ties count for both; plus one, so that p is never 0.
    tail = (min(wins_a, wins_b) + ties + 1) / (resamples + 1)
    return Draws(middle(differences), min(1.0, 2 * tail), wins_a, wins_b, ties)
