"""Which entity does a slot have to find? One-to-one at least cost, or the one it overlaps most."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from spandet.spans.overlap import iou
from spandet.tensors import GoldSpans


def slot_costs(
    start_probs: Float[Tensor, "batch span word"],
    last_probs: Float[Tensor, "batch span word"],
    label_probs: Float[Tensor, "batch span label"],
    gold: GoldSpans,
) -> Float[Tensor, "batch span gold"]:
    """Appendix A: how little a slot believes in each entity."""

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
    table, goes_to = costs.detach().float().cpu().numpy(), np.full(costs.shape[:2], -1)
    slots, entities = free.cpu().numpy(), gold.cpu().numpy()
    for row in range(len(table)):
        own, columns = slots[row].nonzero()[0], entities[row].nonzero()[0]
        if not len(own) or not len(columns):
            continue
        many = len(own) if per_entity is None else per_entity * len(columns)
        columns = np.resize(columns, many)  # again and again, in turn
        left, right = linear_sum_assignment(table[row][np.ix_(own, columns)])
        goes_to[row, own[left]] = columns[right]
    return torch.from_numpy(goes_to).to(costs.device)


def overlapped(
    spans: Int[Tensor, "batch span 2"], free: Bool[Tensor, "batch span"], gold: GoldSpans
) -> Int[Tensor, "batch span"]:
    """The entity that each free slot overlaps most; -1 for slots that overlap none."""
    if gold.spans.shape[1] == 0:
        return torch.full(spans.shape[:2], -1, device=spans.device)
    best, index = (iou(spans[:, :, None], gold.spans[:, None]) * gold.mask[:, None]).max(dim=2)
    return torch.where(free & (best > 0), index, -1)
