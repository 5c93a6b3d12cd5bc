"""Sequences in one flat list, and their layout in the input of a recurrent network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from spandet.tensors import to_device


@dataclass(frozen=True)
class Sequences:
    """Index tensors between a flat list of items and the input of a recurrent network."""

    lengths: Int[Tensor, " sequence"]
    mirror: Int[Tensor, " item"]
    """The item at the same distance from the other end of the same sequence."""
    take: Int[Tensor, "..."]
    """Index of the item at each position of the network's input; padding repeats item 0."""
    give: Int[Tensor, " item"]
    """Index of each item in the network's output."""
    batch_sizes: tuple[int, ...] | None
    """Number of sequences at each step if `take` is packed; None if it is a padded grid."""

    @property
    def owner(self) -> Int[Tensor, " item"]:
        """Index of the sequence of each item."""
        numbers = torch.arange(len(self.lengths), device=self.lengths.device)
        return numbers.repeat_interleave(self.lengths)

    def on_grid(self) -> "Sequences":
        """The same sequences as a padded grid."""
        if self.batch_sizes is None:
            return self
        return to_device(padded(self.lengths.tolist()), self.lengths.device)


def padded(lengths: Sequence[int]) -> Sequences:
    """A padded grid of steps × sequences: fastest if all lengths are similar."""
    return _Items(lengths).on_grid()


def packed(lengths: Sequence[int]) -> Sequences:
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
            lengths=torch.from_numpy(self.lengths),
            mirror=torch.from_numpy(self.mirror),
            take=torch.from_numpy(take),
            give=torch.from_numpy(give),
            batch_sizes=batch_sizes,
        )
