"""A pyramid of features over windows of words, read upwards and downwards (section 3.2)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.cells import Cells, Level
from spandet.layers.dropout import Dropout
from spandet.layers.exported import Exportable, Part
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
        grid = sequences.on_grid()
        return self.on_grid(cells, grid.mirror, grid.take, grid.give)

    def on_grid(
        self,
        cells: Float[Tensor, "cell dim"],
        mirror: Int[Tensor, " cell"],
        take: Int[Tensor, "step sequence"],
        give: Int[Tensor, " cell"],
    ) -> Float[Tensor, "cell dim"]:
        """The same for sequences on a grid, whose tensors are named as in `Sequences`."""
        read = self.net.on_grid(self.dropout(self.norm(cells)), mirror, take, give)
        result: Tensor = self.dropout(self.out(read))
        return result


class Upwards(nn.Module):
    """A convolution over the cells of a level: the input of the level above."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        self.map = nn.Linear(kernel * dim, dim)

    def forward(self, below: Float[Tensor, "below dim"], level: Level) -> Float[Tensor, "cell dim"]:
        """One vector for every cell of the level above."""
        return self.mixed(below, level.below)

    def mixed(
        self, below: Float[Tensor, "below dim"], parts: Int[Tensor, "cell kernel"]
    ) -> Float[Tensor, "cell dim"]:
        """The same (eq. 6, second line), given which cells below each cell is made of."""
        return F.gelu(self.map(below[parts].flatten(1)))


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
        """The message to every cell below.

        Args:
            cells: What the cells of the upper level know.
            level: The upper level.
            below: The features of the level below.
        """
        return self.spread(cells, level.below, below)

    def spread(
        self,
        cells: Float[Tensor, "cell inputs"],
        parts: Int[Tensor, "cell kernel"],
        below: Float[Tensor, "below dim"],
    ) -> Float[Tensor, "below dim"]:
        """The same (eq. 7, third line), given which cells below each cell is made of."""
        said = self.map(cells).view(-1, below.shape[1])
        told = self.bias + torch.zeros_like(below).index_add(0, parts.flatten(), said)
        return F.gelu(told)


class FeaturePyramid(Exportable):
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
            grid = level.sequences.on_grid()
            own = self.rise(number, features[-1], level.below, grid.mirror, grid.take, grid.give)
            features.append(own)
        if self.backward_blocks is None:
            return tuple(features[1:])
        return self._downwards(words, features[1:], cells.levels)

    def start_as_convolutions(self) -> None:
        """Let the transposed convolutions start as stock ones do."""
        for down in self.downwards if self.backward_blocks is not None else ():
            cast("Downwards", down).start_as_convolution()

    def parts(self) -> Iterable[Part]:
        """Each level on the way up and on the way down."""
        levels = range(len(self.upward_blocks))
        yield from (Part(method="rise", fixed=(number,)) for number in levels)
        if self.backward_blocks is not None:
            yield from (Part(method="sink", fixed=(number,)) for number in levels)
            yield from (Part(method="tell", fixed=(number,)) for number in levels[1:])

    def rise(
        self,
        number: int,
        below: Float[Tensor, "below dim"],
        parts: Int[Tensor, "cell kernel"],
        mirror: Int[Tensor, " cell"],
        take: Int[Tensor, "step sequence"],
        give: Int[Tensor, " cell"],
    ) -> Float[Tensor, "cell dim"]:
        """The features of a level on the way up (eq. 6); the lowest is made of words."""
        arriving = below
        if number:
            arriving = cast("Upwards", self.upwards[number - 1]).mixed(below, parts)
        block = cast("RecurrentBlock", self.upward_blocks[number])
        return block.on_grid(arriving, mirror, take, give)

    def _downwards(
        self, words: Tensor, features: Sequence[Tensor], levels: Sequence[Level]
    ) -> tuple[Tensor, ...]:
        assert self.backward_blocks is not None  # noqa: S101 (asked only where there are some)
        finished: list[Tensor] = []
        told = features[-1]  # the top has nobody above: it listens to itself
        for number in reversed(range(len(levels))):
            level, grid = levels[number], levels[number].sequences.on_grid()
            done, merged = self.sink(
                number,
                self._pooled(words, level),
                features[number],
                told,
                grid.mirror,
                grid.take,
                grid.give,
            )
            finished.append(done)
            if number:
                below, source = levels[number - 1], features[number - 1]
                sent = done if self.message == "finished" else merged
                told = self.tell(number, sent, level.below, source)
                told = torch.where(below.has_above[:, None], told, source)
        return tuple(reversed(finished))

    def sink(
        self,
        number: int,
        pooled: Float[Tensor, "cell dim"],
        own: Float[Tensor, "cell dim"],
        told: Float[Tensor, "cell dim"],
        mirror: Int[Tensor, " cell"],
        take: Int[Tensor, "step sequence"],
        give: Int[Tensor, " cell"],
    ) -> tuple[Float[Tensor, "cell dim"], Float[Tensor, "cell twice"]]:
        """The finished features of a level on the way down, and what they are made from (eq. 7)."""
        assert self.backward_blocks is not None  # noqa: S101 (asked only where there are some)
        block = cast("RecurrentBlock", self.backward_blocks[number])
        merged = torch.cat([own, block.on_grid(told, mirror, take, give)], dim=1)
        mixed = self.dropout(self.merge[number](merged))
        return self.norms[number](pooled + mixed), merged

    def tell(
        self,
        number: int,
        sent: Float[Tensor, "cell inputs"],
        parts: Int[Tensor, "cell kernel"],
        below: Float[Tensor, "below dim"],
    ) -> Float[Tensor, "below dim"]:
        """What a level says to the cells of the level below (eq. 7, third line)."""
        return cast("Downwards", self.downwards[number - 1]).spread(sent, parts, below)

    def _pooled(self, words: Tensor, level: Level) -> Tensor:
        windows = words[level.words]
        return windows.mean(dim=1) if self.pool == "mean" else windows.amax(dim=1)
