"""Who answers for which entity: a set of proposals against a set of gold entities."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from spandet.tensors import at_least_float32

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

    With "raw" and "greedy" it is algorithm 1 of the proposer and regressor; "relative" solves the
    problem that its eq. 23 states.

    Args:
        costs: Of giving a proposal to an entity.
        none_costs: Of giving it to nothing.
        matching: The Hungarian pairs have the least sum of their own costs ("raw"), or of what they
            cost above the proposals' second choice ("relative"): only then is the sum over all
            proposals the least there is.
        rest: A proposal that is left takes the cheapest of all entities and none, or always none.
    """
    second, goes_to = none_costs, np.full(len(costs), -1)
    if rest == "greedy" and costs.shape[1]:
        cheapest = costs.min(axis=1)
        second = np.minimum(none_costs, cheapest)
        goes_to = np.where(cheapest < none_costs, costs.argmin(axis=1), -1)
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
    solve = partial(assign, matching=matching, rest=rest)
    return by_sentence(solve, spans, gold, costs, none_costs)


def by_sentence(
    solve: Callable[..., Int[np.ndarray, " own"]],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    costs: Float[Tensor, "batch span gold"],
    *more: Float[Tensor, "batch span"],
) -> Int[Tensor, "batch span"]:
    """Solve each sentence by itself: the entity of each span, -1 for none.

    Args:
        solve: Called with the costs of a sentence's own spans and entities, and with `more` of its
            spans; says which of these entities each of these spans goes to, -1 for none.
        spans: Those that take part.
        gold: Entities that take part.
        costs: Of every pair; what is no number costs more than anything else.
        more: Other costs of spans.
    """
    table, *others = (_finite(values) for values in (costs, *more))
    real, wanted = spans.cpu().numpy(), gold.cpu().numpy()
    goes_to = np.full(real.shape, -1)
    for row in range(len(real)):
        own, columns = real[row].nonzero()[0], wanted[row].nonzero()[0]
        if len(own) and len(columns):
            found = solve(table[row][np.ix_(own, columns)], *(other[row][own] for other in others))
            goes_to[row, own] = np.where(found < 0, -1, columns[found])
    return torch.from_numpy(goes_to).to(costs.device)


def _finite(costs: Float[Tensor, "*shape"]) -> Float[np.ndarray, "*shape"]:
    numbers = torch.nan_to_num(at_least_float32(costs.detach()), nan=_NEVER, posinf=_NEVER)
    return numbers.cpu().numpy()


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
