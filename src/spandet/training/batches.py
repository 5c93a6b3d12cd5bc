"""Batches of sentences of similar length; the same for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from spandet.chance import generator
from spandet.training.settings import TrainingSettings

_WINDOW = 50
"""Batches per window. Sentences are sorted only inside a window, so that company changes."""


def batches(
    runs: Sequence[Sequence[int]], sizes: Sequence[int], *, epoch: int, settings: TrainingSettings
) -> list[tuple[int, ...]]:
    """The sentences of each batch of an epoch; every sentence is in exactly one.

    Args:
        runs: Sentences that are read as one, and so stay together.
        sizes: Pieces of each sentence; those of a run have one size.
        epoch: Counted from 0.
        settings: Seed and budgets.
    """
    chance = generator(settings.seed, "batches", epoch)
    order = torch.randperm(len(runs), generator=chance).tolist()
    window = _WINDOW * settings.batch_sentences
    found: list[tuple[int, ...]] = []
    for first in range(0, len(order), window):
        found.extend(fill([runs[i] for i in order[first : first + window]], sizes, settings))
    shuffled = torch.randperm(len(found), generator=chance).tolist()
    return [found[i] for i in shuffled]


def fill(
    runs: Sequence[Sequence[int]], sizes: Sequence[int], settings: TrainingSettings
) -> Iterator[tuple[int, ...]]:
    """Batches of runs, shortest first; a new one where the next run would break a budget."""
    batch: list[int] = []
    rows = 0
    for run in sorted(runs, key=lambda run: sizes[run[0]]):
        # The newest is the longest: all others are padded to its size.
        padded = (rows + 1) * sizes[run[0]]
        many = len(batch) + len(run)
        if batch and (many > settings.batch_sentences or padded > settings.batch_pieces):
            yield tuple(batch)
            batch, rows = [], 0
        batch.extend(run)
        rows += 1
    if batch:
        yield tuple(batch)


def part_of(batch: Sequence[int], *, process: int, processes: int) -> tuple[int, ...]:
    """What one process gets of a batch; the parts are alike in number and length."""
    return tuple(batch[process::processes])
