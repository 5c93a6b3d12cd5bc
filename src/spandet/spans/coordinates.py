"""Conversions between units of spans: real-valued boundaries, words, noise space."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from spandet.spans.choices import Divisor, State


def to_words(soft_spans: Float[Tensor, "*shape 2"]) -> Int[Tensor, "*shape 2"]:
    """Round real-valued boundaries to whole words, halves up (Locate and Label, eqs. 6-7)."""
    return torch.floor(soft_spans.detach() + 0.5).long()


def clamped(
    spans: Int[Tensor, "span 2"], fallback: Int[Tensor, "span 2"], lengths: Int[Tensor, " span"]
) -> Int[Tensor, "span 2"]:
    """Clamp spans to their sentence; those that are empty afterwards become their fallback."""
    starts = torch.minimum(spans[:, 0].clamp(min=0), lengths - 1)
    ends = torch.minimum(spans[:, 1].clamp(min=1), lengths)
    legal = starts < ends
    return torch.where(legal[:, None], torch.stack([starts, ends], dim=1), fallback)


def legal(spans: Int[Tensor, "span 2"], lengths: Int[Tensor, " span"]) -> Tensor:
    """Mask of the spans that are not empty and inside their sentence."""
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
    """Convert spans to noise space: first and last word, or first word and width, in ±scale.

    DiffusionNER, section 4.1, normalization: boundaries are divided by the sentence length M
    (`length`) and scaled to (-λ, λ). Divided by M - 1 (`last`), they cover the whole range.
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
    """Convert points of noise space to the nearest spans, not empty and inside their sentence.

    DiffusionNER, section 4.2, discretization: rescale, multiply and round. Inverted boundaries are
    swapped.
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
