"""Batches of sentences of similar length; the same for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from spandet.chance import generator
from spandet.training.settings import TrainingSettings

_WINDOW = 50
"""Batches per window. Sentences are sorted only inside a window, so that company changes."""


def batches(
    sizes: Sequence[int], *, epoch: int, settings: TrainingSettings
) -> list[tuple[int, ...]]:
    """The sentences of each batch of an epoch; every sentence is in exactly one.

    Args:
        sizes: Pieces of each sentence.
        epoch: Counted from 0.
        settings: Seed and budgets.
    """
    chance = generator(settings.seed, "batches", epoch)
    order = torch.randperm(len(sizes), generator=chance).tolist()
    window = _WINDOW * settings.batch_sentences
    found: list[tuple[int, ...]] = []
    for first in range(0, len(order), window):
        by_size = sorted(order[first : first + window], key=sizes.__getitem__)
        found.extend(fill(by_size, sizes, settings))
    shuffled = torch.randperm(len(found), generator=chance).tolist()
    return [found[i] for i in shuffled]


def fill(
    by_size: Sequence[int], sizes: Sequence[int], settings: TrainingSettings
) -> Iterator[tuple[int, ...]]:
    """Cut a run of sentences, shortest first, where the next one would break a budget."""
    batch: list[int] = []
    for sentence in by_size:
        # The newest is the longest: all others are padded to its size.
        padded = (len(batch) + 1) * sizes[sentence]
        if batch and (len(batch) == settings.batch_sentences or padded > settings.batch_pieces):
            yield tuple(batch)
            batch = []
        batch.append(sentence)
    if batch:
        yield tuple(batch)


def part_of(batch: Sequence[int], *, process: int, processes: int) -> tuple[int, ...]:
    """What one process gets of a batch; the parts are alike in number and length."""
    return tuple(batch[process::processes])
