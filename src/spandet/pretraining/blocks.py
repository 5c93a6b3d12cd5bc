"""Blocks: pieces of text in rows of equal length, and the order in which a run reads them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from spandet.encoding.pieces import Special
from spandet.pretraining.pieces import PieceStream
from spandet.seeding import generator


@dataclass(frozen=True)
class Block:
    """One row of pieces."""

    ids: np.ndarray
    starts: np.ndarray
    """Is the piece the first of a word?"""


class Blocks:
    """A stream of pieces in blocks, each with the special pieces around it, without padding."""

    def __init__(self, stream: PieceStream, special: Special, *, size: int) -> None:
        """Cut a stream.

        Args:
            stream: What to cut. The last block begins earlier if it would be too short.
            special: Pieces around each block.
            size: Pieces of a block, with these. Less text than that is one shorter block.
        """
        self._stream = stream
        self._prefix, self._suffix = np.array(special.prefix, int), np.array(special.suffix, int)
        self._content = size - len(self._prefix) - len(self._suffix)
        self._last = max(0, len(stream.ids) - self._content)

    def __len__(self) -> int:
        return math.ceil(len(self._stream.ids) / self._content)

    def __getitem__(self, number: int) -> Block:
        first = min(number * self._content, self._last)
        own = slice(first, first + self._content)
        ids = np.concatenate([self._prefix, self._stream.ids[own].astype(int), self._suffix])
        starts = np.ones(len(ids), dtype=bool)
        inner = self._stream.starts[own]
        starts[len(self._prefix) : len(self._prefix) + len(inner)] = inner
        starts[len(self._prefix)] = True  # of what is left of a word, in this block
        return Block(ids, starts)


@dataclass(frozen=True)
class Reading:
    """One block as a run reads it: in which epoch, and which one."""

    epoch: int
    block: int


@dataclass(frozen=True)
class Order:
    """Endless: epoch after epoch of all blocks, each in an order of its own."""

    blocks: int
    seed: int

    def readings(self, first: int, count: int) -> list[Reading]:
        """So many readings, `first` being counted from the beginning of the run."""
        pairs = [divmod(number, self.blocks) for number in range(first, first + count)]
        return [Reading(epoch, int(_shuffled(self, epoch)[place])) for epoch, place in pairs]


@lru_cache(maxsize=2)
def _shuffled(order: Order, epoch: int) -> np.ndarray:
    chance = generator(order.seed, "blocks", epoch)
    shuffled: np.ndarray = torch.randperm(order.blocks, generator=chance).numpy()
    return shuffled
