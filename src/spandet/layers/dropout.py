"""Dropout at a third of the cost of `nn.Dropout` on a CPU."""

import torch
from torch import Tensor, nn

_VALUES = 1 << 16


class Dropout(nn.Dropout):
    """Dropout that on a CPU draws one random number for four items.

    Drawing a number per item is most of the cost of `nn.Dropout`. The rate is exact to 1/65,536.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (the name of the original)
        """Set a share of the input to zero in training, and scale up the rest."""
        dropped = round(self.p * _VALUES)
        if not self.training or input.device.type != "cpu" or not 0 < dropped < _VALUES:
            return super().forward(input)
        numbers = torch.empty(-(-input.numel() // 4), dtype=torch.int64)
        numbers.random_(torch.iinfo(torch.int64).min, None)
        kept = numbers.view(torch.int16)[: input.numel()] >= dropped - _VALUES // 2
        weights = kept.view(input.shape).to(input.dtype).mul_(_VALUES / (_VALUES - dropped))
        return input * weights


def use_fast_dropout(model: nn.Module) -> None:
    """Replace every `nn.Dropout` inside a model."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p))
