"""Numbers as vectors: sines and cosines of many wavelengths."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

_LONGEST = 10_000.0


def sinusoids(numbers: Int[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape dim"]:
    """The first half are sines, the second cosines; an odd dimension ends with a zero."""
    half = dim // 2
    rates = torch.exp(-math.log(_LONGEST) / max(half - 1, 1) * torch.arange(half)).to(
        numbers.device
    )
    angles = numbers[..., None] * rates
    waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return nn.functional.pad(waves, (0, dim - 2 * half))


class NumberEmbedding(nn.Module):
    """Sinusoid → Linear → GELU → Linear."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))

    def forward(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape dim"]:
        """A vector for each number."""
        waves = sinusoids(numbers, self.dim)  # in full precision: numbers may be large
        embedded: Tensor = self.net(waves.to(next(self.net.parameters()).dtype))
        return embedded
