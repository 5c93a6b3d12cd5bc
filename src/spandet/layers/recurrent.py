"""Recurrent nets in both directions over sequences of any lengths."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from spandet.layers.sequences import Sequences

Cell = Literal["lstm", "gru"]
_CELLS: dict[Cell, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class BiRNN(nn.Module):
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
        self.dropout = nn.Dropout(dropout)
        self.dim = dim

    def forward(
        self, items: Float[Tensor, "item input"], sequences: Sequences
    ) -> Float[Tensor, "item dim"]:
        """One vector per item; its first half has read what is before, its second what is after."""
        if not len(items):
            return items.new_zeros(0, self.dim)
        mirror = sequences.mirror
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            left = _run(ahead, items, sequences)
            right = _run(back, items[mirror], sequences)[mirror]
            items = self.dropout(torch.cat([left, right], dim=-1))
        return items


def _run(
    net: nn.Module, items: Float[Tensor, "item input"], sequences: Sequences
) -> Float[Tensor, "item half"]:
    if items.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return _read(net, items, sequences)
    # Few processors have kernels for recurrent nets in half precision.
    with torch.autocast("cpu", enabled=False):
        return _read(net, items.float(), sequences)


def _read(
    net: nn.Module, items: Float[Tensor, "item input"], sequences: Sequences
) -> Float[Tensor, "item half"]:
    laid_out = items[sequences.take]
    if sequences.batch_sizes is None:
        output, _ = net(laid_out)  # step sequence half
        flat: Tensor = output.flatten(0, 1)
    else:
        output, _ = net(PackedSequence(laid_out, torch.tensor(sequences.batch_sizes)))
        flat = output.data
    return flat[sequences.give]
