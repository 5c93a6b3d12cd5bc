"""Changes of unit: each is a function here, and gives its result a new name."""

from typing import Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

State = Literal["ends", "width"]
"""What a pair of latents stands for: first and last word, or first word and width."""
Divisor = Literal["last", "length"]
"""What words are divided by to be shares of a sentence: the last word, or the number of words."""


def to_words(soft_spans: Float[Tensor, "*shape 2"]) -> Int[Tensor, "*shape 2"]:
    """Real-valued boundaries to whole words, halves upwards (Locate and Label, eqs. 6-7)."""
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


def to_latents(
    spans: Shaped[Tensor, "*#shape 2"],
    lengths: Int[Tensor, "*#shape"],
    *,
    scale: float,
    state: State,
    divisor: Divisor = "last",
) -> Float[Tensor, "*#shape 2"]:
    """Spans in noise space: first and last word, or first word and width, from -scale to scale.

    Section 4.1 of DiffusionNER: boundaries, normalized by the sentence length M (`length`) and
    scaled to (-λ, λ). By the last word, M - 1, shares reach from 0 to 1.
    """
    most = (lengths if divisor == "length" else lengths - 1).clamp(min=1)[..., None]
    first, last = spans[..., 0], spans[..., 1] - 1
    pair = torch.stack([first, last if state == "ends" else last - first], dim=-1)
    return scale * (2 * pair / most - 1)


def to_spans(
    latents: Float[Tensor, "*#shape 2"],
    lengths: Int[Tensor, "*#shape"],
    *,
    scale: float,
    state: State,
    divisor: Divisor = "last",
) -> Int[Tensor, "*#shape 2"]:
    """The spans nearest to points of noise space; never empty, never outside their sentence.

    Section 4.2 of DiffusionNER: rescaling, multiplying and rounding. Ends in the wrong order are
    exchanged.
    """
    unit = (latents.clamp(-scale, scale) / scale + 1) / 2
    if state == "ends":
        unit = unit.sort(dim=-1).values
    else:
        unit = torch.stack([unit[..., 0], unit.sum(dim=-1).clamp(max=1)], dim=-1)
    most = (lengths - 1).clamp(min=0)[..., None]
    words = (unit * (lengths[..., None] if divisor == "length" else most)).round().long()
    first, last = torch.minimum(words, most).unbind(dim=-1)
    return torch.stack([first, last + 1], dim=-1)
