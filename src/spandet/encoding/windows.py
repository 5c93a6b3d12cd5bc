"""Windows of pieces that fit into a transformer: a sentence with context, or parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive pieces that are encoded together, and those of them whose vectors are kept.

    Pieces are counted from the first piece of the context before the sentence.
    """

    start: int
    end: int
    kept_start: int
    kept_end: int


def windows_of(
    before: int, own: int, after: int, *, capacity: int, context: int, overlap: int
) -> list[Window]:
    """The windows of a sentence of `own` pieces with context before and after it.

    Both sides get half of the context each, as its nearest pieces; what one side does not have goes
    to the other. A sentence longer than the capacity has no context: it is divided into overlapping
    windows of equal size, and each piece is kept from the window whose edges are farthest from it.

    Args:
        before: Number of context pieces before the sentence.
        own: Number of pieces of the sentence.
        after: Number of context pieces after the sentence.
        capacity: Maximum pieces of a window.
        context: Maximum pieces of context, both sides together.
        overlap: Minimum number of pieces that neighbouring windows share.
    """
    start, end = before, before + own
    room = min(context, capacity - own)
    if room >= 0:
        left = min(before, max(room // 2, room - after))
        right = min(after, room - left)
        return [Window(start - left, end + right, start, end)]
    step = capacity - min(overlap, capacity // 2)
    starts = [*range(start, end - capacity, step), end - capacity]
    # Windows have equal sizes: the one with the farthest edges is the one with the nearest middle.
    borders = [(a + b + capacity) // 2 for a, b in pairwise(starts)]
    kept = pairwise([start, *borders, end])
    return [Window(s, s + capacity, a, b) for s, (a, b) in zip(starts, kept, strict=True)]
