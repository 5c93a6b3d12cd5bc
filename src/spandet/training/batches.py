"""Batches of sentences of similar length; the same for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from spandet.inference.batching import Budget, length_buckets
from spandet.seeding import generator
from spandet.training.data import TrainingSentences
from spandet.training.settings import TrainingSettings

_WINDOW = 50
"""Batches per window. Sentences are sorted only inside a window, so that company changes."""


def batches(
    sentences: TrainingSentences, *, epoch: int, settings: TrainingSettings
) -> list[tuple[int, ...]]:
    """The sentences of each batch of an epoch, counted from 0; each is in exactly one."""
    chance = generator(settings.seed, "batches", epoch)
    runs = sentences.runs
    order = torch.randperm(len(runs), generator=chance).tolist()
    window = _WINDOW * settings.batch_sentences
    found: list[tuple[int, ...]] = []
    for first in range(0, len(order), window):
        own = [runs[i] for i in order[first : first + window]]
        found.extend(fill(own, sentences, settings))
    shuffled = [found[i] for i in torch.randperm(len(found), generator=chance).tolist()]
    if epoch < settings.short_first_epochs:
        shuffled.sort(key=lambda batch: max(sentences.sizes[number] for number in batch))
    return shuffled


def fill(
    runs: Sequence[Sequence[int]], sentences: TrainingSentences, settings: TrainingSettings
) -> Iterator[tuple[int, ...]]:
    """Batches of some of the runs."""
    budget = Budget(settings.batch_sentences, settings.batch_pieces)
    return length_buckets(runs, sentences.sizes, sentences.words, budget)


def part_of(batch: Sequence[int], *, process: int, processes: int) -> tuple[int, ...]:
    """What one process gets of a batch; the parts are alike in number and length."""
    return tuple(batch[process::processes])
