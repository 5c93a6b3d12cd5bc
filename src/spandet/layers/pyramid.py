"""A pyramid of features over windows of words, read upwards and downwards (section 3.2)."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.cells import Cells, Level
from spandet.layers.recurrent import BiRNN, Cell
from spandet.layers.sequences import Sequences

Pool = Literal["mean", "max"]
Message = Literal["finished", "merged"]


class RecurrentBlock(nn.Module):
    """LayerNorm → recurrent net in both directions → Linear, over the cells of one level."""

    def __init__(self, *, dim: int, cell: Cell, recurrent_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.net = BiRNN(cell=cell, input_dim=dim, dim=recurrent_dim)
        self.out = nn.Linear(recurrent_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, cells: Float[Tensor, "cell dim"], sequences: Sequences
    ) -> Float[Tensor, "cell dim"]:
        """Every cell, having read its neighbours."""
        read = self.net(self.dropout(self.norm(cells)), sequences)
        result: Tensor = self.dropout(self.out(read))
        return result


class Upwards(nn.Module):
    """A convolution over the cells of a level: the input of the level above."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(kernel * dim, dim)

    def forward(self, below: Float[Tensor, "below dim"], level: Level) -> Float[Tensor, "cell dim"]:
        """One vector for every cell of the level above."""
        return F.gelu(self.map(below[level.below].flatten(1)))


class Downwards(nn.Module):
    """A transposed convolution: what a level tells the one below."""

    def __init__(self, inputs: int, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, kernel * dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(
        self, cells: Float[Tensor, "cell inputs"], level: Level, below: Float[Tensor, "below dim"]
    ) -> Float[Tensor, "below dim"]:
        """The message to every cell below.

        Args:
            cells: What the cells of the upper level know.
            level: The upper level.
            below: The features of the level below.
        """
        parts = self.map(cells).view(-1, below.shape[1])
        told = self.bias + torch.zeros_like(below).index_add(0, level.below.flatten(), parts)
        return F.gelu(told)


class FeaturePyramid(nn.Module):
    """Forward blocks from words to wide windows, backward blocks the way down again.

    Everything is a flat list of real cells, so there is no padding that could leak.
    """

    def __init__(
        self,
        *,
        dim: int,
        kernels: Sequence[int],
        block: Callable[[], RecurrentBlock],
        dropout: float,
        backward: bool,
        pool: Pool,
        message: Message,
    ) -> None:
        super().__init__()

        def blocks() -> nn.ModuleList:
            return nn.ModuleList(block() for _ in range(len(kernels) + 1))

        self.upward_blocks = blocks()
        self.upwards = nn.ModuleList(Upwards(dim, kernel) for kernel in kernels)
        self.pool, self.message = pool, message
        self.backward_blocks = blocks() if backward else None
        if backward:
            inputs = dim if message == "finished" else 2 * dim
            self.downwards = nn.ModuleList(Downwards(inputs, dim, kernel) for kernel in kernels)
            self.merge = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in self.upward_blocks)
            self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in self.upward_blocks)
            self.dropout = nn.Dropout(dropout)

    def forward(
        self, words: Float[Tensor, "item dim"], cells: Cells
    ) -> tuple[Float[Tensor, "cell dim"], ...]:
        """The features of the cells of each level, the lowest first."""
        features: list[Tensor] = []
        arriving = words
        for number, level in enumerate(cells.levels):
            if number:
                arriving = self.upwards[number - 1](features[-1], level)
            features.append(self.upward_blocks[number](arriving, level.sequences))
        if self.backward_blocks is None:
            return tuple(features)
        return self._downwards(words, features, cells.levels)

    def _downwards(
        self, words: Tensor, features: Sequence[Tensor], levels: Sequence[Level]
    ) -> tuple[Tensor, ...]:
        assert self.backward_blocks is not None  # noqa: S101 (asked only where there are some)
        finished: list[Tensor] = []
        told = features[-1]  # the top has nobody above: it listens to itself
        for number in reversed(range(len(levels))):
            level, own = levels[number], features[number]
            merged = torch.cat([own, self.backward_blocks[number](told, level.sequences)], dim=1)
            mixed = self.dropout(self.merge[number](merged))
            finished.append(self.norms[number](self._pooled(words, level) + mixed))
            if number:
                below, source = levels[number - 1], features[number - 1]
                sent = finished[-1] if self.message == "finished" else merged
                told = self.downwards[number - 1](sent, level, source)
                told = torch.where(below.has_above[:, None], told, source)
        return tuple(reversed(finished))

    def _pooled(self, words: Tensor, level: Level) -> Tensor:
        windows = words[level.words]
        return windows.mean(dim=1) if self.pool == "mean" else windows.amax(dim=1)
