"""Recurrent nets in both directions over sequences of any lengths."""

from collections.abc import Iterable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from spandet.layers.dropout import Dropout
from spandet.layers.exported import Exportable, Part, is_exported
from spandet.layers.sequences import Sequences

Cell = Literal["lstm", "gru"]
_CELLS: dict[Cell, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class BiRNN(Exportable):
    """An LSTM or GRU in both directions; padding never reaches a real item.

    Each direction is a net of its own that reads left to right, one of them over the mirrored
    sequences: so padding always comes last, and the fast kernels for padded input stay exact.
    """

    def __init__(
        self, *, cell: Cell, input_dim: int, dim: int, layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = [input_dim, *[dim] * (layers - 1)]
        self.forwards = nn.ModuleList(_CELLS[cell](size, dim // 2) for size in sizes)
        self.backwards = nn.ModuleList(_CELLS[cell](size, dim // 2) for size in sizes)
        self.dropout = Dropout(dropout)
        self.dim = dim

    def forward(
        self, items: Float[Tensor, "item input"], sequences: Sequences
    ) -> Float[Tensor, "item dim"]:
        """One vector per item; its first half has read what is before, its second what is after."""
        if not len(items):
            return items.new_zeros(0, self.dim)
        if sequences.batch_sizes is not None and is_exported(self, "on_grid"):
            sequences = sequences.on_grid()
        if sequences.batch_sizes is None:
            return self.on_grid(items, sequences.mirror, sequences.take, sequences.give)
        steps = torch.tensor(sequences.batch_sizes)
        return self._through(items, sequences.mirror, sequences.take, sequences.give, steps)

    def parts(self) -> Iterable[Part]:
        """It is one."""
        return [Part(method="on_grid")]

    def on_grid(
        self,
        items: Float[Tensor, "item input"],
        mirror: Int[Tensor, " item"],
        take: Int[Tensor, "step sequence"],
        give: Int[Tensor, " item"],
    ) -> Float[Tensor, "item dim"]:
        """The same for sequences on a grid, whose tensors are named as in `Sequences`."""
        return self._through(items, mirror, take, give, None)

    def _through(
        self, items: Tensor, mirror: Tensor, take: Tensor, give: Tensor, steps: Tensor | None
    ) -> Tensor:
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            left = _run(ahead, items[take], steps)[give]
            right = _run(back, items[mirror][take], steps)[give][mirror]
            items = self.dropout(torch.cat([left, right], dim=-1))
        return items


def _run(net: nn.Module, laid_out: Tensor, steps: Tensor | None) -> Float[Tensor, "item half"]:
    if laid_out.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return _read(net, laid_out, steps)
    # Few processors have kernels for recurrent nets in half precision.
    with torch.autocast("cpu", enabled=False):
        return _read(net, laid_out.float(), steps)


def _read(net: nn.Module, laid_out: Tensor, steps: Tensor | None) -> Float[Tensor, "item half"]:
    if steps is None:
        output, _ = net(laid_out)  # step sequence half
        flat: Tensor = output.flatten(0, 1)
        return flat
    output, _ = net(PackedSequence(laid_out, steps))
    packed: Tensor = output.data
    return packed
