"""Bars into layers: what overlaps lies on different layers, and there are as few as possible."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

Extent = tuple[int, int]
"""Where a bar begins and where it ends, half-open."""


def layers(extents: Sequence[Extent]) -> list[int]:
    """The layer of each bar, 0 nearest to the text; bars that start together come outer first.

    Each bar from left to right takes the nearest free layer, which needs no more layers than bars
    overlap anywhere. An outer bar is nearer than those inside it, unless a crossing bar forced it
    away: so no bar hangs below an empty layer, far from its words.
    """
    found = [0] * len(extents)
    running: list[tuple[int, int]] = []  # end and layer of bars that may reach the next start
    free: list[int] = []
    used = 0
    for i in sorted(range(len(extents)), key=lambda i: extents[i][0]):
        start, end = extents[i]
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        if free:
            found[i] = heappop(free)
        else:
            found[i], used = used, used + 1
        heappush(running, (end, found[i]))
    return found
