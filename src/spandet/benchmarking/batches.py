"""Which sentences are timed together."""

from __future__ import annotations

from collections.abc import Sequence

Batch = Sequence[int]
"""Numbers of sentences."""


def sorted_batches(lengths: Sequence[int], size: int) -> list[Batch]:
    """Batches of one size, sorted by length as training and prediction sort them.

    Args:
        lengths: Words of each sentence; those without words are left out.
        size: Sentences of a batch.
    """
    order = sorted((i for i in range(len(lengths)) if lengths[i]), key=lengths.__getitem__)
    return [order[first : first + size] for first in range(0, len(order), size)]


def sample(batches: Sequence[Batch], sentences: int) -> list[Batch]:
    """Batches with about so many sentences, evenly taken from all."""
    total = sum(map(len, batches))
    if total <= sentences:
        return list(batches)
    count = max(1, round(len(batches) * sentences / total))
    return [batches[i * len(batches) // count] for i in range(count)]
