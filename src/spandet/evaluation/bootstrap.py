"""Confidence intervals of scores by bootstrap resampling of documents.

A resample draws documents with replacement. Documents with the same counts are interchangeable, so
one multinomial draw over the distinct counts is a complete resample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from spandet.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

CountsT = TypeVar("CountsT", bound=tuple[int, ...])

_CELLS = 4_000_000  # numbers drawn at once, to limit memory


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval: the 2.5th and the 97.5th percentile of the resamples."""

    low: float
    high: float

    def to_json(self) -> list[float]:
        """The list [low, high]."""
        return [self.low, self.high]


def check_resamples(resamples: int) -> None:
    """Check the number of resamples before any document is read.

    Raises:
        UsageError: it is negative.
    """
    if resamples < 0:
        raise UsageError(f"resamples must be 0 (no intervals) or more, not {resamples}")


def intervals(
    triples: Counter[tuple[int, int, int]], *, resamples: int, seed: int
) -> Mapping[str, Interval | None]:
    """95 % intervals of precision, recall and F1; None for fewer than two documents."""
    if triples.total() < 2 or resamples == 0:
        return dict.fromkeys(("precision", "recall", "f1"))
    correct, predicted, gold = resampled(triples, resamples=resamples, seed=seed).T
    return {
        "precision": middle(_shares(correct, predicted)),
        "recall": middle(_shares(correct, gold)),
        "f1": middle(f1_of(correct, predicted, gold)),
    }


def resampled(counts: Mapping[CountsT, int], *, resamples: int, seed: int) -> Floats:
    """The summed counts of each resample, one row per resample.

    `counts` maps the counts of a document to the number of documents with these counts.
    """
    import numpy as np  # noqa: PLC0415 (takes 0.1 s, and only intervals need it)

    distinct = sorted(counts)  # so that the order of the documents does not matter
    rows = np.array(distinct, dtype=np.float64)
    weights = np.array([counts[row] for row in distinct], dtype=np.float64)
    number = int(weights.sum())
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    step = max(1, _CELLS // len(distinct))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        draws = rng.multinomial(number, weights / number, size=size)
        sums[start : start + size] = draws @ rows
    return sums


def f1_of(correct: Floats, predicted: Floats, gold: Floats) -> Floats:
    """F1 of each resample."""
    return _shares(2 * correct, predicted + gold)


def middle(values: Floats) -> Interval:
    """The interval from the 2.5th to the 97.5th percentile."""
    import numpy as np  # noqa: PLC0415

    low, high = np.percentile(values, (2.5, 97.5))
    return Interval(float(low), float(high))


def _shares(part: Floats, whole: Floats) -> Floats:
    import numpy as np  # noqa: PLC0415

    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
