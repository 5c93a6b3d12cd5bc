"""Suppression of overlapping or crossing candidates, for all sentences of a batch at once."""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

NmsRule = Literal["paper", "released-code"]
"""Soft-NMS as in the paper Locate and Label, or as in the code that its authors released."""


def soft_nms(
    spans: Int[np.ndarray, "batch span 2"],
    scores: Float[np.ndarray, "batch span"],
    mask: Bool[np.ndarray, "batch span"],
    *,
    decay: float,
    overlap: float,
    rule: NmsRule = "paper",
    may_cross: bool = True,
) -> Float[np.ndarray, "batch span"]:
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
    if decay == 1 and may_cross:
        return scores
    a, b, pairs = spans[:, :, None], spans[:, None], _pairs(mask)
    near = pairs & (iou(a, b) >= overlap if rule == "paper" else iou(a, b) > overlap)
    crossing = np.zeros_like(pairs) if may_cross else pairs & crosses(a, b)
    left = (near | crossing).any(axis=2)  # the other candidates keep their scores
    affected = left.any(axis=1)
    near, crossing, left = near[affected], crossing[affected], left[affected]
    initial, final, kept = scores[affected], scores[affected], ~left
    rows = np.arange(len(left))
    for _ in range(left.sum(axis=1).max(initial=0)):
        ranked = final if rule == "paper" else initial
        best = np.where(left, ranked, -1).argmax(axis=1)
        fits = left[rows, best] & ~(crossing[rows, best] & kept).any(axis=1)
        kept[rows, best] |= fits
        left[rows, best] = False
        np.multiply(final, decay, out=final, where=left & near[rows, best] & fits[:, None])
    result = scores.copy()
    result[affected] = final * kept
    return result


def without_crossing(
    spans: Int[np.ndarray, "batch span 2"],
    scores: Float[np.ndarray, "batch span"],
    mask: Bool[np.ndarray, "batch span"],
) -> Bool[np.ndarray, "batch span"]:
    """Mask of the candidates that cross no kept candidate with a higher score.

    Of candidates with equal scores the first is kept.
    """
    return _best_first(crosses(spans[:, :, None], spans[:, None]), scores, mask)


def without_overlap(
    spans: Int[np.ndarray, "batch span 2"],
    scores: Float[np.ndarray, "batch span"],
    mask: Bool[np.ndarray, "batch span"],
) -> Bool[np.ndarray, "batch span"]:
    """Mask of the candidates that share no word with a kept one of a higher score.

    Of candidates with equal scores the first is kept.
    """
    return _best_first(overlaps(spans[:, :, None], spans[:, None]), scores, mask)


def uncrossed(
    spans: Int[np.ndarray, "batch span 2"], mask: Bool[np.ndarray, "batch span"]
) -> Bool[np.ndarray, "batch span"]:
    """Mask of the candidates that cross no other: both of a crossing pair are dropped.

    The rule of the released code of Locate and Label.
    """
    crossing = crosses(spans[:, :, None], spans[:, None]) & _pairs(mask)
    kept: np.ndarray = mask & ~crossing.any(axis=2)
    return kept


def _best_first(
    conflicts: Bool[np.ndarray, "batch span span"],
    scores: Float[np.ndarray, "batch span"],
    mask: Bool[np.ndarray, "batch span"],
) -> Bool[np.ndarray, "batch span"]:
    """Keep each candidate without a conflict with a better kept one."""
    conflicts = conflicts & _pairs(mask)
    affected = conflicts.any(axis=(1, 2))  # few sentences have conflicts
    kept = mask.copy()
    if affected.any():
        kept[affected] = _greedy(conflicts[affected], scores[affected], mask[affected])
    return kept


def _greedy(
    conflicts: Bool[np.ndarray, "batch span span"],
    scores: Float[np.ndarray, "batch span"],
    mask: Bool[np.ndarray, "batch span"],
) -> Bool[np.ndarray, "batch span"]:
    """Each round keeps the candidates without a better rival, and drops those that they beat."""
    mine, other = scores[:, :, None], scores[:, None]
    earlier = np.tri(scores.shape[1], k=-1, dtype=bool)
    better = conflicts & ((other > mine) | ((other == mine) & earlier))  # batch span rival
    kept, undecided = np.zeros_like(mask), mask
    while undecided.any():
        chosen = undecided & ~(better & undecided[:, None]).any(axis=2)
        kept |= chosen
        undecided = undecided & ~chosen & ~(better & chosen[:, None]).any(axis=2)
    return kept


def _pairs(mask: Bool[np.ndarray, "batch span"]) -> Bool[np.ndarray, "batch span span"]:
    """Pairs of two different candidates, without padding."""
    pairs: np.ndarray = mask[:, :, None] & mask[:, None] & ~np.eye(mask.shape[1], dtype=bool)
    return pairs


def iou(
    a: Int[np.ndarray, "*#shape 2"], b: Int[np.ndarray, "*#shape 2"]
) -> Float[np.ndarray, "*#shape"]:
    """Intersection over union, in words; 0 if the spans do not overlap."""
    shared = np.minimum(a[..., 1], b[..., 1]) - np.maximum(a[..., 0], b[..., 0])
    shared = shared.clip(min=0)
    either = (a[..., 1] - a[..., 0]) + (b[..., 1] - b[..., 0]) - shared
    # In the precision of scores, so that 3 of 5 words are not less than 0.6.
    ratio: np.ndarray = shared.astype(np.float32) / either.clip(min=1).astype(np.float32)
    return ratio


def crosses(
    a: Int[np.ndarray, "*#shape 2"], b: Int[np.ndarray, "*#shape 2"]
) -> Bool[np.ndarray, "*#shape"]:
    """Whether two spans overlap without one containing the other."""
    left = (a[..., 0] < b[..., 0]) & (b[..., 0] < a[..., 1]) & (a[..., 1] < b[..., 1])
    right = (b[..., 0] < a[..., 0]) & (a[..., 0] < b[..., 1]) & (b[..., 1] < a[..., 1])
    crossing: np.ndarray = left | right
    return crossing


def overlaps(
    a: Int[np.ndarray, "*#shape 2"], b: Int[np.ndarray, "*#shape 2"]
) -> Bool[np.ndarray, "*#shape"]:
    """Whether two spans share a word."""
    shared: np.ndarray = np.maximum(a[..., 0], b[..., 0]) < np.minimum(a[..., 1], b[..., 1])
    return shared
