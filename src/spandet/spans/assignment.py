"""Assignment of gold entities to proposals (set matching)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from spandet.spans.choices import Matching, Rest
from spandet.tensors import at_least_float32

_MAX_COST = 1e9


def assign(
    costs: Float[np.ndarray, "proposal gold"],
    none_costs: Float[np.ndarray, " proposal"],
    *,
    matching: Matching,
    rest: Rest,
) -> Int[np.ndarray, " proposal"]:
    """The entity of each proposal, -1 for none; every entity has one if proposals suffice.

    With "raw" and "greedy" this is algorithm 1 of Proposer and Regressor; "relative" solves the
    problem of its eq. 23.

    Args:
        costs: Cost of assigning an entity to a proposal.
        none_costs: Cost of assigning no entity.
        matching: The Hungarian pairs minimise the sum of their costs ("raw"), or of their costs
            minus those of the proposals' alternative ("relative"). Only "relative" minimises the
            sum over all proposals.
        rest: The other proposals get the entity or none, whichever is cheapest ("greedy"), or
            always none.
    """
    alternative, assigned = none_costs, np.full(len(costs), -1)
    if rest == "greedy" and costs.shape[1]:
        cheapest = costs.min(axis=1)
        alternative = np.minimum(none_costs, cheapest)
        assigned = np.where(cheapest < none_costs, costs.argmin(axis=1), -1)
    relative = costs - alternative[:, None] if matching == "relative" else costs
    pairs = linear_sum_assignment(relative)
    assigned[pairs[0]] = pairs[1]
    return assigned


def assign_batch(
    costs: Float[Tensor, "batch span gold"],
    none_costs: Float[Tensor, "batch span"],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    *,
    matching: Matching,
    rest: Rest,
) -> Int[Tensor, "batch span"]:
    """`assign` for each sentence, among the spans and entities of the two masks."""
    solve = partial(assign, matching=matching, rest=rest)
    return by_sentence(solve, spans, gold, costs, none_costs)


def by_sentence(
    solve: Callable[..., Int[np.ndarray, " own"]],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    costs: Float[Tensor, "batch span gold"],
    *more: Float[Tensor, "batch span"],
) -> Int[Tensor, "batch span"]:
    """Assign entities sentence by sentence: the entity of each span, -1 for none.

    Args:
        solve: Called with the costs of one sentence and its rows of `more`; returns the index of
            the entity of each span, -1 for none.
        spans: Mask of the spans to assign.
        gold: Mask of the entities to assign.
        costs: Cost of every pair; NaN is replaced by a very high cost.
        more: Other costs of spans.
    """
    table, *others = (_finite(values) for values in (costs, *more))
    real, wanted = spans.cpu().numpy(), gold.cpu().numpy()
    assigned = np.full(real.shape, -1)
    for row in range(len(real)):
        own, columns = real[row].nonzero()[0], wanted[row].nonzero()[0]
        if len(own) and len(columns):
            found = solve(table[row][np.ix_(own, columns)], *(other[row][own] for other in others))
            assigned[row, own] = np.where(found < 0, -1, columns[found])
    return torch.from_numpy(assigned).to(costs.device)


def _finite(costs: Float[Tensor, "*shape"]) -> Float[np.ndarray, "*shape"]:
    numbers = torch.nan_to_num(at_least_float32(costs.detach()), nan=_MAX_COST, posinf=_MAX_COST)
    return numbers.cpu().numpy()


def nearest(
    costs: Float[Tensor, "batch span gold"],
    spans: Bool[Tensor, "batch span"],
    gold: Bool[Tensor, "batch gold"],
    copies: int,
) -> Int[Tensor, "batch span"]:
    """Assign each entity to its `copies` cheapest proposals (one to many).

    A proposal chosen by several entities gets the one with the lowest cost; -1 for none.
    """
    if not costs.shape[1] or not costs.shape[2]:
        return torch.full(spans.shape, -1, device=costs.device)
    possible = spans[:, :, None] & gold[:, None]
    costs = torch.where(possible, costs.detach(), torch.inf)
    chosen = costs.topk(min(copies, costs.shape[1]), dim=1, largest=False).indices
    wanted = torch.zeros_like(possible).scatter(1, chosen, value=True) & possible
    best, index = torch.where(wanted, costs, torch.inf).min(dim=2)
    return torch.where(best < torch.inf, index, -1)
