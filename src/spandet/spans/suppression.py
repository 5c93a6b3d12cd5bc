"""Suppression of overlapping or crossing candidates, for all sentences of a batch at once."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.spans.overlap import crosses, iou, overlaps

NmsRule = Literal["paper", "released-code"]
"""Soft-NMS as in the paper Locate and Label, or as in the code that its authors released."""


def soft_nms(
    spans: Int[Tensor, "batch span 2"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
    *,
    decay: float,
    overlap: float,
    rule: NmsRule = "paper",
    may_cross: bool = True,
) -> Float[Tensor, "batch span"]:
    """Soft-NMS (Locate and Label, eq. 18 and algorithm 1): the final score of every candidate.

    Each step selects the remaining candidate with the highest score, and multiplies the scores of
    the others that overlap it by at least `overlap` with `decay`. Candidates are selected with
    falling scores, so a candidate below a threshold does not lower the score of one above it.

    The rule "released-code" requires an overlap above `overlap`, and selects candidates in the
    order of their initial scores.

    Args:
        spans: All candidates.
        scores: Their initial scores.
        mask: Candidates that are not padding.
        decay: Factor for the score of an overlapping candidate; 1 changes no score.
        overlap: IoU from which the factor applies.
        rule: Variant of Soft-NMS.
        may_cross: If False, a candidate that crosses one selected before gets the score 0 and
            lowers no other score.
    """
    if (decay == 1 and may_cross) or spans.shape[1] == 0:
        return scores
    shared = iou(spans[:, :, None], spans[:, None])
    shared = shared >= overlap if rule == "paper" else shared > overlap
    crossing = torch.zeros_like(shared) if may_cross else crosses(spans[:, :, None], spans[:, None])
    left, kept, first_scores = mask.clone(), torch.zeros_like(mask), scores
    rows = torch.arange(len(spans), device=spans.device)
    for _ in range(int(mask.sum(dim=1).max())):
        ranked = scores if rule == "paper" else first_scores
        best = ranked.masked_fill(~left, -1).argmax(dim=1)
        fits = left[rows, best] & ~(crossing[rows, best] & kept).any(dim=1)
        kept[rows, best] |= fits
        left[rows, best] = False
        weaker = left & shared[rows, best] & fits[:, None]
        scores = torch.where(weaker, scores * decay, scores)
    return scores if may_cross else scores * kept


def without_crossing(
    spans: Int[Tensor, "batch span 2"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
) -> Bool[Tensor, "batch span"]:
    """Mask of the candidates that cross no kept candidate with a higher score."""
    return _best_first(crosses(spans[:, :, None], spans[:, None]), scores, mask)


def without_overlap(
    spans: Int[Tensor, "batch span 2"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
) -> Bool[Tensor, "batch span"]:
    """Mask of the candidates that share no word with a kept one of a higher score.

    Of candidates with equal scores the first is kept.
    """
    return _best_first(overlaps(spans[:, :, None], spans[:, None]), scores, mask)


def _best_first(
    clashes: Bool[Tensor, "batch span span"],
    scores: Float[Tensor, "batch span"],
    mask: Bool[Tensor, "batch span"],
) -> Bool[Tensor, "batch span"]:
    # Stable, so that ties do not depend on the device.
    order = scores.masked_fill(~mask, -1).argsort(dim=1, descending=True, stable=True)
    kept = torch.zeros_like(mask)
    rows = torch.arange(len(mask), device=mask.device)
    for rank in range(int(mask.sum(dim=1).max()) if mask.numel() else 0):
        place = order[:, rank]
        clash = (clashes[rows, place] & kept).any(dim=1)
        kept[rows, place] = mask[rows, place] & ~clash
    return kept


def uncrossed(
    spans: Int[Tensor, "batch span 2"], mask: Bool[Tensor, "batch span"]
) -> Bool[Tensor, "batch span"]:
    """Mask of the candidates that cross no other: both of a crossing pair are dropped.

    The rule of the released code of Locate and Label.
    """
    crossing = crosses(spans[:, :, None], spans[:, None])
    real = mask[:, :, None] & mask[:, None]
    return mask & ~(crossing & real).any(dim=2)
