"""Which sentences are timed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Batch = Sequence[int]
"""Numbers of sentences."""


def sorted_batches(runs: Sequence[Batch], lengths: Sequence[int], size: int) -> list[Batch]:
    """Batches of about one size, sorted by length as training and prediction sort them.

    Args:
        runs: Sentences that are read as one, and so stay together.
        lengths: Words that are read at once with each sentence; where there are none, it is left
            out.
        size: Sentences of a batch, at least, unless no more are left.
    """
    batches: list[list[int]] = []
    for run in sorted((r for r in runs if lengths[r[0]]), key=lambda run: lengths[run[0]]):
        if not batches or len(batches[-1]) >= size:
            batches.append([])
        batches[-1].extend(run)
    return list(batches)


def read_at_once(runs: Sequence[Batch], lengths: Sequence[int]) -> list[int]:
    """Words that are read at once with each sentence: its own, or those of its passage."""
    words = [0] * len(lengths)
    for run in runs:
        for sentence in run:
            words[sentence] = sum(lengths[mate] for mate in run)
    return words


def runs_from(runs: Sequence[Batch], group: Iterable[int]) -> list[Batch]:
    """Those whose sentences are in a group; no run is partly in one, as all have one length."""
    inside = frozenset(group)
    return [run for run in runs if run[0] in inside]


def sample(batches: Sequence[Batch], sentences: int) -> list[Batch]:
    """Batches with about so many sentences, evenly taken from all."""
    total = sum(map(len, batches))
    if total <= sentences:
        return list(batches)
    count = max(1, round(len(batches) * sentences / total))
    return [batches[i * len(batches) // count] for i in range(count)]
