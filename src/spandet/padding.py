"""Batches of sentences that need little padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

_NEIGHBOURS = 3
"""Batches that are alike in pieces and are sorted anew by words."""


@dataclass(frozen=True)
class Budget:
    """What a batch may hold, unless it is one run."""

    sentences: int
    pieces: int
    """With padding."""


def alike(
    runs: Iterable[Sequence[int]], pieces: Sequence[int], words: Sequence[int], budget: Budget
) -> Iterator[tuple[int, ...]]:
    """All sentences in batches, from short to long.

    Sorted by pieces for the encoder; by these alone, a fifth of what a detector gets would be
    padding, as names are words of many pieces. So neighbours are sorted once more, by words.

    Args:
        runs: Sentences that are read as one, and so stay together.
        pieces: Of each sentence; those of a run have one number.
        words: Of each sentence.
        budget: Of a batch.
    """
    by_pieces = sorted(runs, key=lambda run: pieces[run[0]])
    batches = list(_cut(by_pieces, pieces, budget))
    for first in range(0, len(batches), _NEIGHBOURS):
        some = chain.from_iterable(batches[first : first + _NEIGHBOURS])
        by_words = sorted(some, key=lambda run: max(words[sentence] for sentence in run))
        for batch in _cut(by_words, pieces, budget):
            yield tuple(chain.from_iterable(batch))


def _cut(
    runs: Iterable[Sequence[int]], pieces: Sequence[int], budget: Budget
) -> Iterator[list[Sequence[int]]]:
    """A new batch where the next run would break the budget."""
    batch: list[Sequence[int]] = []
    sentences = longest = 0
    for run in runs:
        sentences, longest = sentences + len(run), max(longest, pieces[run[0]])
        padded = (len(batch) + 1) * longest
        if batch and (sentences > budget.sentences or padded > budget.pieces):
            yield batch
            batch, sentences, longest = [], len(run), pieces[run[0]]
        batch.append(run)
    if batch:
        yield batch
