"""Nesting and crossing of entities, computed on their envelopes in O(n log n)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import cast

from spandet.evaluation.items import Envelope

_FEW = 100  # up to so many pairs, checking each is faster than two sweeps


def nested_depths(ordered: Sequence[Envelope]) -> dict[Envelope, int]:
    """The depth of each envelope that contains another one or is contained; others are omitted.

    `ordered` is sorted, so that overlapping envelopes form runs; most runs have one element.
    """
    found: dict[Envelope, int] = {}
    first = reach = 0
    for index, (start, end) in enumerate(ordered):
        if start >= reach:
            if index - first > 1:
                _add_run(ordered[first:index], found)
            first, reach = index, end
        elif end > reach:
            reach = end
    if len(ordered) - first > 1:
        _add_run(ordered[first:], found)
    return found


def _add_run(run: Sequence[Envelope], found: dict[Envelope, int]) -> None:
    """Add the depths of the nested envelopes of a run."""
    # Outer before inner: an envelope comes after those that contain it and before those inside.
    ordered = sorted({(start, -end) for start, end in run})
    levels: list[int] = []  # minus the largest end seen at each depth; ascending
    depths = []
    for _, minus_end in ordered:
        depth = bisect_right(levels, minus_end)
        levels[depth : depth + 1] = (minus_end,)
        depths.append(depth + 1)
    nearest = float("-inf")  # minus the smallest end of all envelopes that start later
    for (start, minus_end), depth in zip(reversed(ordered), reversed(depths), strict=True):
        if depth > 1 or nearest >= minus_end:
            found[start, -minus_end] = depth
        nearest = max(nearest, minus_end)


class NestedIn:
    """Which envelopes contain one of a fixed set, or are contained in one of it."""

    __slots__ = ("_largest_ends", "_smallest_ends", "_starts")

    def __init__(self, others: Iterable[Envelope]) -> None:
        ordered = sorted(others)
        ends = [end for _, end in ordered]
        self._starts = [start for start, _ in ordered]
        self._largest_ends = [0, *accumulate(ends, max)]
        smallest = list(accumulate(reversed(ends), min))
        self._smallest_ends: list[float] = [*reversed(smallest), float("inf")]

    def __contains__(self, envelope: object) -> bool:
        """Whether it is nested with another envelope of the set; equal envelopes do not count."""
        start, end = cast("Envelope", envelope)
        before, until = bisect_left(self._starts, start), bisect_right(self._starts, start)
        is_inside = self._largest_ends[before] >= end or self._largest_ends[until] > end
        return is_inside or self._smallest_ends[until] <= end or self._smallest_ends[before] < end


def label_nesting(
    envelopes: Sequence[Envelope], labels: Sequence[str], nested: Collection[Envelope]
) -> dict[tuple[Envelope, str], tuple[bool, bool]]:
    """For each nested entity: whether it is nested with its own label, and with another label.

    Args:
        envelopes: The entities of a document.
        labels: Their labels.
        nested: The envelopes that are nested with any other.
    """
    by_label: dict[str, set[Envelope]] = {}
    for envelope, label in zip(envelopes, labels, strict=True):
        if envelope in nested:
            by_label.setdefault(label, set()).add(envelope)
    found: dict[tuple[Envelope, str], tuple[bool, bool]] = {}
    for label, own in by_label.items():
        same = NestedIn(own)
        other = NestedIn(chain.from_iterable(by_label[name] for name in by_label if name != label))
        found |= {(envelope, label): (envelope in same, envelope in other) for envelope in own}
    return found


def crosses(one: Envelope, other: Envelope) -> bool:
    """Whether two envelopes overlap and neither contains the other."""
    return one[0] < other[0] < one[1] < other[1] or other[0] < one[0] < other[1] < one[1]


def crossing(envelopes: Collection[Envelope], others: Collection[Envelope]) -> set[Envelope]:
    """The envelopes that cross at least one of the others."""
    if len(envelopes) * len(others) <= _FEW:
        return {
            (start, end)
            for start, end in envelopes
            for other_start, other_end in others
            if start < other_start < end < other_end or other_start < start < other_end < end
        }
    return sweep_for_crossing(envelopes, others)


def sweep_for_crossing(
    envelopes: Collection[Envelope], others: Collection[Envelope]
) -> set[Envelope]:
    """The same as `crossing`, without checking every pair."""
    by_start = sorted(others)
    return _crossing_at_start(envelopes, by_start) | _crossing_at_end(envelopes, by_start)


def _crossing_at_start(envelopes: Collection[Envelope], by_start: list[Envelope]) -> set[Envelope]:
    """Envelopes whose start lies inside another that ends inside them."""
    found = set()
    ends: list[int] = []  # of the others around the current start; the smallest decides
    seen = 0
    for start, end in sorted(envelopes):
        while seen < len(by_start) and by_start[seen][0] < start:
            heappush(ends, by_start[seen][1])
            seen += 1
        while ends and ends[0] <= start:
            heappop(ends)
        if ends and ends[0] < end:
            found.add((start, end))
    return found


def _crossing_at_end(envelopes: Collection[Envelope], by_start: list[Envelope]) -> set[Envelope]:
    """Envelopes whose end lies inside another that starts inside them."""
    found = set()
    open_ones: list[Envelope] = []  # the last one has the largest start, which decides
    seen = 0
    for start, end in sorted(envelopes, key=itemgetter(1)):
        while seen < len(by_start) and by_start[seen][0] < end:
            open_ones.append(by_start[seen])
            seen += 1
        while open_ones and open_ones[-1][1] <= end:
            open_ones.pop()
        if open_ones and open_ones[-1][0] > start:
            found.add((start, end))
    return found


def count_crossing_pairs(envelopes: Iterable[Envelope]) -> int:
    """The number of crossing pairs; duplicate envelopes are counted separately."""
    pairs = 0
    ends: list[int] = []  # ascending, of the envelopes that started before and are still open
    for start, same_start in groupby(sorted(envelopes), key=itemgetter(0)):
        del ends[: bisect_right(ends, start)]
        starting = [end for _, end in same_start]
        pairs += sum(bisect_left(ends, end) for end in starting)
        for end in starting:
            insort(ends, end)
    return pairs
