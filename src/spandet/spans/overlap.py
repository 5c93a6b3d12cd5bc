"""Overlap of pairs of spans, independent of labels."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

_SMALL = 1e-6


def iou(a: Shaped[Tensor, "*#shape 2"], b: Shaped[Tensor, "*#shape 2"]) -> Float[Tensor, "*#shape"]:
    """Intersection over union, in the unit of the spans; 0 if they do not overlap."""
    shared = torch.minimum(a[..., 1], b[..., 1]) - torch.maximum(a[..., 0], b[..., 0])
    shared = shared.clamp(min=0)
    either = (a[..., 1] - a[..., 0]) + (b[..., 1] - b[..., 0]) - shared
    return shared / either.clamp(min=1)


def signed_iou(
    a: Float[Tensor, "*#shape 2"], b: Float[Tensor, "*#shape 2"]
) -> Float[Tensor, "*#shape"]:
    """Generalised IoU of real-valued spans: negative if they are apart, by their distance.

    An inverted span (end before start) counts as empty at its middle, which keeps a gradient.
    """
    middle = a.mean(dim=-1)
    start, end = torch.minimum(a[..., 0], middle), torch.maximum(a[..., 1], middle)
    shared = torch.minimum(end, b[..., 1]) - torch.maximum(start, b[..., 0])
    cover = torch.maximum(end, b[..., 1]) - torch.minimum(start, b[..., 0])
    return shared / cover.clamp(min=_SMALL)
