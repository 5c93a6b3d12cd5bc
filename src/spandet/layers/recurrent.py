"""Bidirectional recurrent networks over sequences of any lengths."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from spandet.layers.choices import Cell
from spandet.layers.dropout import Dropout
from spandet.layers.layout import Sequences

_CELLS: dict[Cell, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class BiRNN(nn.Module):
    """A bidirectional LSTM or GRU whose output does not depend on padding.

    Each direction is a separate network that runs from left to right, one of them over the reversed
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
        """One vector per item: a half from the items up to it, a half from those after.

        There may be no items.
        """
        if not items.shape[0]:
            return items.new_zeros(0, self.dim)
        return self.run(items, sequences)

    def run(
        self, items: Float[Tensor, "item input"], sequences: Sequences
    ) -> Float[Tensor, "item dim"]:
        """`forward` for at least one item; the ONNX export calls it."""
        take, give, mirror = sequences.take, sequences.give, sequences.mirror
        packed = sequences.batch_sizes
        steps = None if packed is None else torch.tensor(packed)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            left = _run(ahead, items[take], steps)[give]
            right = _run(back, items[mirror][take], steps)[give][mirror]
            items = self.dropout(torch.cat([left, right], dim=-1))
        return items


def _run(net: nn.Module, laid_out: Tensor, steps: Tensor | None) -> Float[Tensor, "item half"]:
    if laid_out.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return _read(net, laid_out, steps)
    # Few CPUs have kernels for recurrent networks in half precision.
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
