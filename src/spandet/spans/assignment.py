"""Who answers for which entity: a set of proposals against a set of gold entities."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

Matching = Literal["relative", "raw"]
Rest = Literal["greedy", "none"]
_NEVER = 1e9


def assign(
    costs: Float[np.ndarray, "proposal gold"],
    none_costs: Float[np.ndarray, " proposal"],
    *,
    matching: Matching,
    rest: Rest,
) -> Int[np.ndarray, " proposal"]:
    """The entity of each proposal, -1 for none; every entity has one as long as there are enough.

    Args:
        costs: Of giving a proposal to an entity.
        none_costs: Of giving it to nothing.
        matching: The Hungarian pairs have the least sum of their own costs ("raw"), or of what they
            cost above the proposals' second choice ("relative"): only then is the sum over all
            proposals the least there is.
        rest: A proposal that is left takes the cheapest of all entities and none, or always none.
    """
    second = none_costs
    if rest == "greedy" and costs.shape[1]:
        second = np.minimum(none_costs, costs.min(axis=1))
    goes_to = np.full(len(costs), -1)
    if rest == "greedy" and costs.shape[1]:
        goes_to = np.where(costs.min(axis=1) < none_costs, costs.argmin(axis=1), -1)
    pairs = linear_sum_assignment(costs - second[:, None] if matching == "relative" else costs)
    goes_to[pairs[0]] = pairs[1]
    return goes_to


def assign_batch(
    costs: Float[Tensor, "batch span gold"],
    none_costs: Float[Tensor, "batch span"],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    *,
    matching: Matching,
    rest: Rest,
) -> Int[Tensor, "batch span"]:
    """`assign` for each sentence; entities that `gold` leaves out are nobody's."""
    table = torch.nan_to_num(costs.detach().float(), nan=_NEVER, posinf=_NEVER).cpu().numpy()
    none = torch.nan_to_num(none_costs.detach().float(), nan=_NEVER, posinf=_NEVER).cpu().numpy()
    real, wanted = spans.cpu().numpy(), gold.cpu().numpy()
    goes_to = np.full(real.shape, -1)
    for row in range(len(real)):
        columns = wanted[row].nonzero()[0]
        own = table[row][real[row]][:, columns]
        found = assign(own, none[row][real[row]], matching=matching, rest=rest)
        goes_to[row, real[row]] = np.where(found < 0, -1, columns[found] if len(columns) else -1)
    return torch.from_numpy(goes_to).to(costs.device)


def nearest(
    costs: Float[Tensor, "batch span gold"],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    copies: int,
) -> Int[Tensor, "batch span"]:
    """One to many: each entity takes the `copies` proposals that are cheapest for it.

    A proposal that several entities want goes to the one for which it is cheapest; -1 for nobody's.
    """
    if not costs.shape[1] or not costs.shape[2]:
        return torch.full(spans.shape, -1, device=costs.device)
    possible = spans[:, :, None] & gold[:, None]
    costs = torch.where(possible, costs.detach(), torch.inf)
    chosen = costs.topk(min(copies, costs.shape[1]), dim=1, largest=False).indices
    wanted = torch.zeros_like(possible).scatter(1, chosen, value=True) & possible
    best, index = torch.where(wanted, costs, torch.inf).min(dim=2)
    return torch.where(best < torch.inf, index, -1)
