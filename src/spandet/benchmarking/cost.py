"""What a detector costs beside its bare encoder: the same batches, in turn, in one run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypedDict

from spandet.benchmarking.batches import Batch, sample
from spandet.benchmarking.clock import Timing, Work, best_times
from spandet.benchmarking.memory import peak_of
from spandet.errors import UsageError
from spandet.training.progress import Screen

_BOUNDS = (10, 20, 40, 80)
"""The longest sentence of each group, in words; the last group has none."""
_NAMES = (*(f"{low + 1}–{high}" for low, high in pairwise((0, *_BOUNDS))), f"{_BOUNDS[-1] + 1}+")


class Contest(Protocol):
    """Two ways through some sentences: the bare encoder, and everything."""

    @property
    def lengths(self) -> Sequence[int]:
        """Words that are read at once with each sentence: its own, or those of its passage."""

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some sentences in batches; sorted by length."""

    def works(self, batch: Batch) -> tuple[Work, Work]:
        """The bare encoder and everything, on the same batch."""


class _Times(TypedDict):
    timed: int
    bare: float
    whole: float


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What sentences of some length cost."""

    name: str
    sentences: int
    """In the data."""
    timed: int
    """Of these, how many were timed."""
    bare: float
    """Seconds per sentence in the bare encoder."""
    whole: float
    """Seconds per sentence in all."""
    peak: int | None
    """Bytes of memory at most, weights included; None where nobody can tell."""

    @property
    def ratio(self) -> float:
        """How many times as long as the bare encoder takes."""
        return self.whole / self.bare


def costs_by_length(contest: Contest, timing: Timing, screen: Screen) -> list[Cost]:
    """The cost of short, longer and long sentences, as far as there are any.

    Raises:
        UsageError: there are no words.
    """
    groups = by_length(contest.lengths)
    if not any(groups):
        raise UsageError("there is no sentence with a word to measure with")
    everything = [contest.batches(group, timing.batch) for group in groups]
    # Memory first: what the bare encoder leaves behind (its own optimizer, say) does not count.
    screen.begin_part("memory", len(groups))
    peaks = []
    for batches in everything:
        peaks.append(peak_of(contest.works(batches[-1])[1]) if batches else None)
        screen.advance_part(1)
    share = timing.sentences / sum(map(len, groups))
    chosen = [
        sample(batches, max(1, round(share * len(group))))
        for group, batches in zip(groups, everything, strict=True)
    ]
    screen.begin_part("timing", sum(map(len, chosen)))
    return [
        Cost(name=name, sentences=len(group), peak=peak, **_times(contest, batches, timing, screen))
        for name, group, batches, peak in zip(_NAMES, groups, chosen, peaks, strict=True)
        if batches
    ]


def _times(contest: Contest, batches: Sequence[Batch], timing: Timing, screen: Screen) -> _Times:
    bare = whole = 0.0
    for batch in batches:
        times = best_times(contest.works(batch), timing)
        bare, whole = bare + times[0], whole + times[1]
        screen.advance_part(1)
    timed = sum(map(len, batches))
    return {"timed": timed, "bare": bare / timed, "whole": whole / timed}


def by_length(lengths: Sequence[int]) -> list[list[int]]:
    """The numbers of short, longer and long sentences; those without words are left out."""
    groups: list[list[int]] = [[] for _ in _NAMES]
    for number, length in enumerate(lengths):
        if length:
            groups[bisect_left(_BOUNDS, length)].append(number)
    return groups


def together(costs: Sequence[Cost]) -> Cost:
    """All lengths, each as often as the data have it."""
    total = sum(cost.sentences for cost in costs)
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return Cost(
        name="all",
        sentences=total,
        timed=sum(cost.timed for cost in costs),
        bare=sum(cost.bare * cost.sentences for cost in costs) / total,
        whole=sum(cost.whole * cost.sentences for cost in costs) / total,
        peak=max(peaks, default=None),
    )
