"""Which entity does a slot have to find? One-to-one at least cost, or the one it overlaps most."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.spans.assignment import assign, by_sentence
from spandet.spans.overlap import iou
from spandet.tensors import GoldSpans


def slot_costs(
    start_probs: Float[Tensor, "batch span word"],
    last_probs: Float[Tensor, "batch span word"],
    label_probs: Float[Tensor, "batch span label"],
    gold: GoldSpans,
) -> Float[Tensor, "batch span gold"]:
    """Appendix A: the pair-wise cost -Σ_δ P^δ, δ = l, r, c; that of ∅ is 0."""

    def at(probs: Tensor, index: Tensor) -> Tensor:
        wide = index[:, None].expand(-1, probs.shape[1], -1)
        return probs.gather(2, wide)

    starts, ends = gold.spans.unbind(dim=-1)
    return -(at(start_probs, starts) + at(last_probs, ends - 1) + at(label_probs, gold.labels))


def match_slots(
    costs: Float[Tensor, "batch span gold"],
    free: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    *,
    per_entity: int | None,
) -> Int[Tensor, "batch span"]:
    """The entity of each slot at the least total cost; -1 for slots that are left or not free.

    Args:
        costs: Of every pair.
        free: Slots that take part.
        gold: Entities that are real.
        per_entity: How many slots may share an entity; None: as many as it takes for all slots to
            have one, as evenly as possible.
    """

    def solve(own: Float[np.ndarray, "slot entity"]) -> Int[np.ndarray, " slot"]:
        slots, entities = own.shape
        many = slots if per_entity is None else per_entity * entities
        columns = np.resize(np.arange(entities), many)  # again and again, in turn
        found = assign(own[:, columns], np.zeros(slots), matching="raw", rest="none")
        return np.where(found < 0, -1, columns[found])

    return by_sentence(solve, free, gold, costs)


def overlapped(
    spans: Int[Tensor, "batch span 2"], free: Bool[Tensor, "batch span"], gold: GoldSpans
) -> Int[Tensor, "batch span"]:
    """The entity that each free slot overlaps most; -1 for slots that overlap none."""
    if gold.spans.shape[1] == 0:
        return torch.full(spans.shape[:2], -1, device=spans.device)
    best, index = (iou(spans[:, :, None], gold.spans[:, None]) * gold.mask[:, None]).max(dim=2)
    return torch.where(free & (best > 0), index, -1)
