"""Which pieces a transformer reads at once: context around a sentence, windows over a long one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Window:
    """A run of pieces that is read at once, and the part of it whose vectors are kept.

    Pieces are counted from the first one of the context before the sentence.
    """

    start: int
    end: int
    kept_start: int
    kept_end: int


def windows_of(
    before: int, own: int, after: int, *, capacity: int, context: int, overlap: int
) -> list[Window]:
    """How to read a sentence of `own` pieces with context before and after it.

    Context is shared equally by both sides, what one side does not have goes to the other, and the
    nearest pieces are taken. A sentence over the capacity has none: it is read in windows of the
    same size, and each piece is kept from the window whose edges are farthest from it.

    Args:
        before: Pieces of context at hand on the left.
        own: Pieces of the sentence.
        after: Pieces of context at hand on the right.
        capacity: Most pieces that can be read at once.
        context: Most pieces of context, both sides together.
        overlap: Pieces that neighbouring windows share at least.
    """
    start, end = before, before + own
    room = min(context, capacity - own)
    if room >= 0:
        left = min(before, max(room // 2, room - after))
        right = min(after, room - left)
        return [Window(start - left, end + right, start, end)]
    step = capacity - min(overlap, capacity // 2)
    starts = [*range(start, end - capacity, step), end - capacity]
    # Windows have one size, so the farthest edges are those of the window with the nearest middle.
    borders = [(a + b + capacity) // 2 for a, b in pairwise(starts)]
    kept = pairwise([start, *borders, end])
    return [Window(s, s + capacity, a, b) for s, (a, b) in zip(starts, kept, strict=True)]
