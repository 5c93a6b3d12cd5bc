"""Numbers as vectors: sines and cosines of many wavelengths."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

_LONGEST = 10_000.0


def sinusoids(
    numbers: Int[Tensor, "*shape"], dim: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape dim"]:
    """The first half are sines, the second cosines; an odd dimension ends with a zero."""
    half = dim // 2
    steps = torch.arange(half, device=numbers.device).to(dtype)
    rates = torch.exp(-math.log(_LONGEST) / max(half - 1, 1) * steps)
    angles = numbers[..., None] * rates
    waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return nn.functional.pad(waves, (0, dim - 2 * half))


def alternating_sinusoids(
    numbers: Int[Tensor, "*shape"], dim: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape dim"]:
    """Sines and cosines in turn, of n / 10000^(2i / dim) (Vaswani et al., 2017, section 3.5)."""
    steps = torch.arange((dim + 1) // 2, device=numbers.device).to(dtype)
    angles = numbers[..., None] * torch.exp(-math.log(_LONGEST) * 2 / dim * steps)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


def wide(dtype: torch.dtype) -> torch.dtype:
    """The precision to compute sinusoids in: numbers may be large."""
    return torch.promote_types(dtype, torch.float32)


class NumberEmbedding(nn.Module):
    """Sinusoid → Linear → GELU → Linear."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))

    def forward(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape dim"]:
        """A vector for each number."""
        dtype = next(self.net.parameters()).dtype
        embedded: Tensor = self.net(sinusoids(numbers, self.dim, wide(dtype)).to(dtype))
        return embedded
