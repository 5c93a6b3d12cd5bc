"""Index tables of the pyramid's cells: windows of words, one flat list per level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.layers.layout import Sequences
from spandet.layers.sequences import padded


@dataclass(frozen=True)
class Level:
    """The cells of one level: all windows of `width` words."""

    width: int
    sequences: Sequences
    """The cells of each sentence as a sequence."""
    words: Int[Tensor, "cell width"]
    """Index of the words in each cell, counted over all sentences."""
    below: Int[Tensor, "cell kernel"]
    """Index of the cells of the level below that each cell is computed from; none at level 0."""
    has_above: Bool[Tensor, " cell"]
    """Whether the sentence of the cell has cells on the level above."""
    spans: Float[Tensor, "cell 2"]
    """First word and end of each cell, counted in its sentence."""


@dataclass(frozen=True)
class Cells:
    """The levels that have at least one cell."""

    levels: tuple[Level, ...]
    covering: Int[Tensor, "item cover"]
    """For each word all cells that contain it, counted over all levels; padded with -1."""
    mask: Bool[Tensor, "batch most"]
    """Mask of one row of cells per sentence, level by level."""
    order: Int[Tensor, " cell"]
    """Index of the cells in these rows, counted over all levels."""


def cell_widths(kernels: Sequence[int]) -> tuple[int, ...]:
    """Eq. 5: v_l, the number of words in a cell of each level; each kernel adds kernel - 1."""
    return tuple(1 + int(more) for more in np.cumsum([0, *[kernel - 1 for kernel in kernels]]))


def cells_of(lengths: Sequence[int], kernels: Sequence[int]) -> Cells:
    """The cells over sentences of these lengths, at least one of which has a word."""
    words = np.asarray(lengths, dtype=np.int64)
    widths = cell_widths(kernels)
    counts = [np.maximum(words - width + 1, 0) for width in widths]
    counts = [count for count in counts if count.any()]
    levels = [
        _level(widths[number], counts, number, 0 if number == 0 else kernels[number - 1])
        for number in range(len(counts))
    ]
    owner = np.concatenate([np.repeat(np.arange(len(count)), count) for count in counts])
    own = np.sum(counts, axis=0)
    return Cells(
        tuple(levels),
        torch.from_numpy(_covering(widths, counts)),
        torch.from_numpy(np.arange(own.max()) < own[:, None]),
        torch.from_numpy(np.argsort(owner, kind="stable")),
    )


def _level(width: int, counts: list[np.ndarray], number: int, kernel: int) -> Level:
    count = counts[number]
    owner = np.repeat(np.arange(len(count)), count)
    first = np.arange(count.sum()) - _bases(count)[owner]
    below = (
        (_bases(counts[number - 1])[owner] + first)[:, None] + np.arange(kernel)
        if number
        else np.zeros((len(owner), 0), dtype=np.int64)
    )
    above = counts[number + 1] if number + 1 < len(counts) else np.zeros_like(count)
    return Level(
        width,
        padded(count.tolist()),
        torch.from_numpy((_bases(counts[0])[owner] + first)[:, None] + np.arange(width)),
        torch.from_numpy(below),
        torch.from_numpy(above[owner] > 0),
        torch.from_numpy(np.stack([first, first + width], axis=1).astype(np.float32)),
    )


def _covering(widths: Sequence[int], counts: list[np.ndarray]) -> np.ndarray:
    owner = np.repeat(np.arange(len(counts[0])), counts[0])
    position = np.arange(counts[0].sum()) - _bases(counts[0])[owner]
    tables, before = [], 0
    for width, count in zip(widths, counts, strict=False):
        cell = position[:, None] - np.arange(width)
        real = (cell >= 0) & (cell < count[owner][:, None])
        tables.append(np.where(real, before + _bases(count)[owner][:, None] + cell, -1))
        before += int(count.sum())
    return np.concatenate(tables, axis=1)


def _bases(count: np.ndarray) -> np.ndarray:
    bases: np.ndarray = np.cumsum(count) - count
    return bases
