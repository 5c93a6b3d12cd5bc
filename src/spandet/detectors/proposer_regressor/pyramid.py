"""A pyramid of features over windows of words, read upwards and downwards (section 3.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.cells import Cells, Level
from spandet.layers.dropout import Dropout
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
        self.dropout = Dropout(dropout)

    def forward(
        self, cells: Float[Tensor, "cell dim"], sequences: Sequences
    ) -> Float[Tensor, "cell dim"]:
        """Every cell, having read its neighbours."""
        read = self.net(self.dropout(self.norm(cells)), sequences.on_grid())
        result: Tensor = self.dropout(self.out(read))
        return result


class Upwards(nn.Module):
    """A convolution over the cells of a level: the input of the level above."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(kernel * dim, dim)

    def forward(self, below: Float[Tensor, "below dim"], level: Level) -> Float[Tensor, "cell dim"]:
        """One vector for every cell of the level above (eq. 6, second line)."""
        return F.gelu(self.map(below[level.below].flatten(1)))


class Downwards(nn.Module):
    """A transposed convolution: what a level tells the one below."""

    def __init__(self, inputs: int, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, kernel * dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim))

    def start_as_convolution(self) -> None:
        """First weights as those of `nn.ConvTranspose1d`, whose bound is by what comes out."""
        bound = self.map.out_features**-0.5
        nn.init.uniform_(self.map.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(
        self, cells: Float[Tensor, "cell inputs"], level: Level, below: Float[Tensor, "below dim"]
    ) -> Float[Tensor, "below dim"]:
        """The message to every cell below (eq. 7, third line).

        Args:
            cells: What the cells of the upper level know.
            level: The upper level.
            below: The features of the level below.
        """
        sent = self.map(cells).view(-1, below.shape[1])
        received = torch.zeros_like(below).index_add(0, level.below.flatten(), sent)
        return F.gelu(self.bias + received)


@dataclass(frozen=True)
class Downward:
    """The cells of a level on the way down."""

    finished: Float[Tensor, "cell dim"]
    """Their final features."""
    merged: Float[Tensor, "cell twice"]
    """The features that these are computed from: of both directions, side by side."""


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
            self.dropout = Dropout(dropout)

    def forward(
        self, words: Float[Tensor, "item dim"], cells: Cells
    ) -> tuple[Float[Tensor, "cell dim"], ...]:
        """The features of the cells of each level, the lowest first."""
        features = [words]
        for number, level in enumerate(cells.levels):
            features.append(self.upward_level(number, features[-1], level))
        if self.backward_blocks is None:
            return tuple(features[1:])
        return self._downwards(words, features[1:], cells.levels)

    def start_as_convolutions(self) -> None:
        """Let the transposed convolutions start as stock ones do."""
        for down in self.downwards if self.backward_blocks is not None else ():
            cast("Downwards", down).start_as_convolution()

    def upward_level(
        self, number: int, below: Float[Tensor, "below dim"], level: Level
    ) -> Float[Tensor, "cell dim"]:
        """The features of a level on the way up (eq. 6); the lowest is made of words."""
        arriving = self.upwards[number - 1](below, level) if number else below
        features: Tensor = self.upward_blocks[number](arriving, level.sequences)
        return features

    def _downwards(
        self, words: Tensor, features: Sequence[Tensor], levels: Sequence[Level]
    ) -> tuple[Tensor, ...]:
        finished: list[Tensor] = []
        message = features[-1]  # there is no level above the top: it gets its own features
        for number in reversed(range(len(levels))):
            level, own = levels[number], features[number]
            down = self.downward_level(number, self._pooled(words, level), own, message, level)
            finished.append(down.finished)
            if number:
                below, source = levels[number - 1], features[number - 1]
                sent = down.finished if self.message == "finished" else down.merged
                message = self.message_below(number, sent, level, source)
                message = torch.where(below.has_above[:, None], message, source)
        return tuple(reversed(finished))

    def downward_level(
        self,
        number: int,
        pooled: Float[Tensor, "cell dim"],
        own: Float[Tensor, "cell dim"],
        message: Float[Tensor, "cell dim"],
        level: Level,
    ) -> Downward:
        """A level on the way down, from its pooled words, own features and a message (eq. 7)."""
        assert self.backward_blocks is not None  # noqa: S101 (called only where there are some)
        received = self.backward_blocks[number](message, level.sequences)
        merged = torch.cat([own, received], dim=1)
        mixed = self.dropout(self.merge[number](merged))
        return Downward(self.norms[number](pooled + mixed), merged)

    def message_below(
        self,
        number: int,
        sent: Float[Tensor, "cell inputs"],
        level: Level,
        below: Float[Tensor, "below dim"],
    ) -> Float[Tensor, "below dim"]:
        """The message of a level to the cells of the level below (eq. 7, third line)."""
        message: Tensor = self.downwards[number - 1](sent, level, below)
        return message

    def _pooled(self, words: Tensor, level: Level) -> Tensor:
        windows = words[level.words]
        return windows.mean(dim=1) if self.pool == "mean" else windows.amax(dim=1)
