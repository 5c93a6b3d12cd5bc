"""Dropout that costs a third of the usual one on a processor."""

import torch
from torch import Tensor, nn

_WAYS = 1 << 16


class Dropout(nn.Dropout):
    """On a processor, one random number decides about four items.

    Drawing a number for each is most of the cost of the usual one. The share of what is dropped is
    exact to 1/65,536.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (the name of the original)
        """Zeroes a share of its input in training, and scales up the rest."""
        dropped = round(self.p * _WAYS)
        if not self.training or input.device.type != "cpu" or not 0 < dropped < _WAYS:
            return super().forward(input)
        numbers = torch.empty(-(-input.numel() // 4), dtype=torch.int64)
        numbers.random_(torch.iinfo(torch.int64).min, None)
        kept = numbers.view(torch.int16)[: input.numel()] >= dropped - _WAYS // 2
        weights = kept.view(input.shape).to(input.dtype).mul_(_WAYS / (_WAYS - dropped))
        return input * weights


def use_fast_dropout(model: nn.Module) -> None:
    """Replace every usual dropout inside a model."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p))
