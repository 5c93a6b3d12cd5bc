"""Changes of unit: each is a function here, and gives its result a new name."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def to_words(soft_spans: Float[Tensor, "*shape 2"]) -> Int[Tensor, "*shape 2"]:
    """Real-valued boundaries to whole words, halves upwards (Locate and Label, eq. 5)."""
    return torch.floor(soft_spans.detach() + 0.5).long()


def clamped(
    spans: Int[Tensor, "span 2"], fallback: Int[Tensor, "span 2"], lengths: Int[Tensor, " span"]
) -> Int[Tensor, "span 2"]:
    """Spans pulled into their sentence; one that is empty even then becomes its fallback."""
    starts = torch.minimum(spans[:, 0].clamp(min=0), lengths - 1)
    ends = torch.minimum(spans[:, 1].clamp(min=1), lengths)
    legal = starts < ends
    return torch.where(legal[:, None], torch.stack([starts, ends], dim=1), fallback)


def legal(spans: Int[Tensor, "span 2"], lengths: Int[Tensor, " span"]) -> Tensor:
    """Which spans are not empty and lie in their sentence?"""
    starts, ends = spans.unbind(dim=-1)
    return (starts >= 0) & (starts < ends) & (ends <= lengths)
