"""Which of several overlapping candidates stay. A loop step serves all sentences of a batch."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.spans.overlap import crosses, iou


def soft_nms(
    spans: Int[Tensor, "batch span 2"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
    *,
    decay: float,
    overlap: float,
) -> Float[Tensor, "batch span"]:
    """Soft-NMS (Locate and Label, algorithm 1): the final score of every candidate.

    Again and again the best candidate left is taken out, and those left that overlap it by at least
    `overlap` lose the factor `decay`.
    """
    if decay == 1 or spans.shape[1] == 0:
        return scores
    shared = iou(spans[:, :, None], spans[:, None]) >= overlap
    left = mask.clone()
    rows = torch.arange(len(spans), device=spans.device)
    for _ in range(int(mask.sum(dim=1).max())):
        best = scores.masked_fill(~left, -1).argmax(dim=1)
        left[rows, best] = False
        scores = torch.where(left & shared[rows, best], scores * decay, scores)
    return scores


def without_crossing(
    spans: Int[Tensor, "batch span 2"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
) -> Bool[Tensor, "batch span"]:
    """Best first, keep what does not cross anything kept so far."""
    # Stable, so that ties do not depend on the device.
    order = scores.masked_fill(~mask, -1).argsort(dim=1, descending=True, stable=True)
    crossing = crosses(spans[:, :, None], spans[:, None])
    kept = torch.zeros_like(mask)
    rows = torch.arange(len(spans), device=spans.device)
    for rank in range(int(mask.sum(dim=1).max()) if mask.numel() else 0):
        place = order[:, rank]
        clash = (crossing[rows, place] & kept).any(dim=1)
        kept[rows, place] = mask[rows, place] & ~clash
    return kept


def uncrossed(
    spans: Int[Tensor, "batch span 2"], mask: Bool[Tensor, "batch span"]
) -> Bool[Tensor, "batch span"]:
    """Only what crosses nothing at all: both of a crossing pair go (the released code's rule)."""
    crossing = crosses(spans[:, :, None], spans[:, None])
    real = mask[:, :, None] & mask[:, None]
    return mask & ~(crossing & real).any(dim=2)
