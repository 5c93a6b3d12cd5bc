"""The proposer (section 3.2): a feature pyramid over windows of words, and the first proposals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.detectors.proposer_regressor.cells import Cells, Level
from spandet.detectors.proposer_regressor.settings import Message, Pool, Query
from spandet.layers.choices import EMBEDDING_STD, Cell
from spandet.layers.dropout import Dropout
from spandet.layers.layout import Sequences
from spandet.layers.recurrent import BiRNN
from spandet.layers.regressor import mlp
from spandet.layers.sequences import on_grid
from spandet.tensors import at_least_float32


class RecurrentBlock(nn.Module):
    """LayerNorm → bidirectional recurrent network → Linear, over the cells of one level."""

    def __init__(self, *, dim: int, cell: Cell, recurrent_dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.net = BiRNN(cell=cell, input_dim=dim, dim=recurrent_dim)
        self.out = nn.Linear(recurrent_dim, dim)
        self.dropout = Dropout(dropout)

    def forward(
        self, cells: Float[Tensor, "cell dim"], sequences: Sequences
    ) -> Float[Tensor, "cell dim"]:
        """One vector per cell."""
        read = self.net(self.dropout(self.norm(cells)), on_grid(sequences))
        result: Tensor = self.dropout(self.out(read))
        return result


class Upwards(nn.Module):
    """A convolution from a level to the level above."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(kernel * dim, dim)

    def forward(self, below: Float[Tensor, "below dim"], level: Level) -> Float[Tensor, "cell dim"]:
        """Eq. 6, second line: H'_{l+1}, the input of the level above."""
        return F.gelu(self.map(below[level.below].flatten(1)))


class Downwards(nn.Module):
    """A transposed convolution from a level to the level below."""

    def __init__(self, inputs: int, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(inputs, kernel * dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(dim))

    def start_as_convolution(self) -> None:
        """Initialise as `nn.ConvTranspose1d` does, with a bound by the size of the output."""
        bound = self.map.out_features**-0.5
        nn.init.uniform_(self.map.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(
        self, cells: Float[Tensor, "cell inputs"], level: Level, below: Float[Tensor, "below dim"]
    ) -> Float[Tensor, "below dim"]:
        """Eq. 7, third line: H^b_{l-1}, the message to every cell below.

        Args:
            cells: Features of the cells of the upper level.
            level: The upper level.
            below: Features of the level below, for their shape.
        """
        sent = self.map(cells).view(-1, below.shape[1])
        received = torch.zeros_like(below).index_add(0, level.below.flatten(), sent)
        return F.gelu(self.bias + received)


@dataclass(frozen=True)
class Downward:
    """A level after its backward block."""

    finished: Float[Tensor, "cell dim"]
    """H_l: its final features."""
    merged: Float[Tensor, "cell twice"]
    """H'_l: the features of both directions side by side, from which H_l is computed."""


class FeaturePyramid(nn.Module):
    """Forward blocks from words up to wide windows, then backward blocks down again.

    All features are flat lists of real cells: there is no padding that could change them.
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
        """Features h_{i,l} of the cells of each level, the lowest level first."""
        features = [words]
        for number, level in enumerate(cells.levels):
            features.append(self.upward_level(number, features[-1], level))
        if self.backward_blocks is None:
            return tuple(features[1:])
        return self._downwards(words, features[1:], cells.levels)

    def start_as_convolutions(self) -> None:
        """Initialise the transposed convolutions as `nn.ConvTranspose1d` does."""
        for down in self.downwards if self.backward_blocks is not None else ():
            cast("Downwards", down).start_as_convolution()

    def upward_level(
        self, number: int, below: Float[Tensor, "below dim"], level: Level
    ) -> Float[Tensor, "cell dim"]:
        """Eq. 6, first line: H^f_l, from the words at level 0, else from the level below."""
        inputs = self.upwards[number - 1](below, level) if number else below
        features: Tensor = self.upward_blocks[number](inputs, level.sequences)
        return features

    def _downwards(
        self, words: Tensor, features: Sequence[Tensor], levels: Sequence[Level]
    ) -> tuple[Tensor, ...]:
        finished: list[Tensor] = []
        message = features[-1]  # the highest level gets its own features
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
        """Eq. 7, first two lines: H_l from Pool(H), H^f_l (`own`) and H^b_l (`message`)."""
        assert self.backward_blocks is not None  # noqa: S101 (called only with backward blocks)
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
        """The message of a level to the cells of the level below."""
        message: Tensor = self.downwards[number - 1](sent, level, below)
        return message

    def _pooled(self, words: Tensor, level: Level) -> Tensor:
        windows = words[level.words]
        return windows.mean(dim=1) if self.pool == "mean" else windows.amax(dim=1)


@dataclass(frozen=True)
class FlatProposals:
    """Proposals of all sentences in one flat list, without labels."""

    queries: Float[Tensor, "item dim"]
    soft_spans: Float[Tensor, "item 2"]


class ProposalFusion(nn.Module):
    """One proposal per word, from all cells of the pyramid that contain it (section 3.2.3)."""

    def __init__(self, *, dim: int, query: Query, dropout: float) -> None:
        super().__init__()
        self.scores = mlp(dim, 2)
        self.query = query
        self.norm = nn.LayerNorm(dim) if query == "mixed" else None
        self.dropout = Dropout(dropout)

    def forward(
        self,
        words: Float[Tensor, "item dim"],
        features: tuple[Float[Tensor, "_ dim"], ...],
        cells: Cells,
    ) -> FlatProposals:
        """Average boundaries and features of the cells that contain each word."""
        spans = torch.cat([level.spans for level in cells.levels])
        base = words if self.query == "mixed" else features[0]
        return self.mix(base, torch.cat(features), spans, cells.covering)

    def mix(
        self,
        base: Float[Tensor, "item dim"],
        cells: Float[Tensor, "cell dim"],
        spans: Float[Tensor, "cell 2"],
        covering: Int[Tensor, "item cover"],
    ) -> FlatProposals:
        """Eqs. 8-9: boundaries n_j; queries from `base` (words or level 0) and the same cells."""
        cover = covering.clamp(min=0)  # item cover
        # Positions are counted in words, which half precision cannot represent.
        scores = at_least_float32(self.scores(cells)[cover])
        scores = scores.masked_fill((covering < 0)[..., None], -torch.inf)
        shares = scores.softmax(dim=1)  # item cover 2; eq. 8: α, for start and for end
        places = (shares * spans[cover]).sum(dim=1)  # eq. 9: n
        if self.norm is None:
            return FlatProposals(base, places)
        weights = shares.mean(dim=-1).to(cells.dtype)
        mixed = torch.einsum("ic,icd->id", weights, cells[cover])
        return FlatProposals(self.norm(base + self.dropout(mixed)), places)


class CellProposals(nn.Module):
    """One proposal per cell of the pyramid, with the boundaries of the cell."""

    def __init__(self, *, dim: int, levels: int) -> None:
        super().__init__()
        self.levels = nn.Embedding(levels, dim)
        nn.init.normal_(self.levels.weight, std=EMBEDDING_STD)

    def forward(
        self,
        words: Float[Tensor, "item dim"],
        features: tuple[Float[Tensor, "_ dim"], ...],
        cells: Cells,
    ) -> FlatProposals:
        """The cells with an embedding of their level."""
        del words  # contained in the cells
        queries = [own + self.levels.weight[number] for number, own in enumerate(features)]
        return FlatProposals(torch.cat(queries), torch.cat([level.spans for level in cells.levels]))
