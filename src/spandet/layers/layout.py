"""Layout of sequences in the input of a recurrent network, as index arrays: needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

Array = Any
"""A NumPy array, or a tensor once `to_tensors` has converted it."""


@dataclass(frozen=True)
class Sequences:
    """Index arrays between a flat list of items and the input of a recurrent network."""

    lengths: Int[Array, " sequence"]
    owner: Int[Array, " item"]
    """Index of the sequence of each item."""
    mirror: Int[Array, " item"]
    """The item at the same distance from the other end of the same sequence."""
    take: Int[Array, "..."]
    """Index of the item at each position of the network's input; padding repeats item 0."""
    give: Int[Array, " item"]
    """Index of each item in the network's output."""
    batch_sizes: tuple[int, ...] | None
    """Number of sequences at each step if `take` is packed; None if it is a padded grid."""


def padded_layout(lengths: Sequence[int]) -> Sequences:
    """A padded grid of steps × sequences: fastest if all lengths are similar."""
    return _Items(lengths).on_grid()


def packed_layout(lengths: Sequence[int]) -> Sequences:
    """All steps without padding: fastest if lengths differ much."""
    return _Items(lengths).in_steps()


class _Items:
    """Sequence (`owner`) and position (`step`) of each item."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = np.asarray(lengths, dtype=np.int64)
        starts = np.cumsum(self.lengths) - self.lengths
        self.numbers = np.arange(self.lengths.sum())
        self.owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.step = self.numbers - starts[self.owner]
        self.mirror = starts[self.owner] + self.lengths[self.owner] - 1 - self.step

    def on_grid(self) -> Sequences:
        count = len(self.lengths)
        grid = np.zeros((int(self.lengths.max(initial=0)), count), dtype=np.int64)
        grid[self.step, self.owner] = self.numbers
        return self._sequences(grid, self.step * count + self.owner, None)

    def in_steps(self) -> Sequences:
        rank = np.empty_like(self.lengths)
        rank[np.argsort(-self.lengths, kind="stable")] = np.arange(len(self.lengths))
        take = np.lexsort((rank[self.owner], self.step))
        give = np.empty_like(take)
        give[take] = self.numbers
        return self._sequences(take, give, tuple(np.bincount(self.step).tolist()))

    def _sequences(
        self, take: np.ndarray, give: np.ndarray, batch_sizes: tuple[int, ...] | None
    ) -> Sequences:
        return Sequences(
            lengths=self.lengths,
            owner=self.owner,
            mirror=self.mirror,
            take=take,
            give=give,
            batch_sizes=batch_sizes,
        )
