"""Assignment of entities to proposals, compared with all possible assignments."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.spans.assignment import assign, assign_batch, nearest
from spandet.spans.choices import Rest


def mappings(proposals: int, gold: int, rest: Rest) -> Iterator[tuple[int, ...]]:
    """All assignments of entities to proposals (-1: none) that use every entity if possible."""
    for assigned in itertools.product(range(-1, gold), repeat=proposals):
        own = [entity for entity in assigned if entity >= 0]
        once = len(own) == len(set(own))
        covers = len(set(own)) == min(gold, proposals)
        if covers and (once or (rest == "greedy" and proposals > gold)):
            yield assigned


def total(costs: np.ndarray, none_costs: np.ndarray, assigned: tuple[int, ...]) -> float:
    return float(sum(none_costs[i] if j < 0 else costs[i, j] for i, j in enumerate(assigned)))


@given(st.integers(1, 5), st.integers(0, 3), st.sampled_from(["greedy", "none"]), st.integers(0))
@settings(max_examples=80)
def test_relative_matching_has_the_least_total_cost(
    proposals: int, gold: int, rest: Rest, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.gamma(1.0, 3.0, (proposals, gold))
    none_costs = rng.gamma(1.0, 2.0, proposals)
    found = tuple(assign(costs, none_costs, matching="relative", rest=rest).tolist())
    possible = set(mappings(proposals, gold, rest))
    assert found in possible
    least = min(total(costs, none_costs, assigned) for assigned in possible)
    assert total(costs, none_costs, found) == pytest.approx(least)
    raw = tuple(assign(costs, none_costs, matching="raw", rest=rest).tolist())
    assert raw in possible


@pytest.mark.parametrize(("rest", "other", "raw"), [("none", 10, 13), ("greedy", 3, 6)])
def test_raw_matching_ignores_the_cost_of_the_alternative(
    rest: Rest, other: float, raw: float
) -> None:
    """The first proposal is cheaper for the entity, but its alternative is cheaper still."""
    table, none_costs = np.array([[3.0], [4.0]]), np.array([1.0, other])
    by_raw = assign(table, none_costs, matching="raw", rest=rest)
    assert by_raw.tolist() == [0, -1]
    assert total(table, none_costs, tuple(by_raw)) == raw
    by_relative = assign(table, none_costs, matching="relative", rest=rest)
    assert by_relative.tolist() == [-1, 0]
    assert total(table, none_costs, tuple(by_relative)) == 5


def test_other_proposals_share_an_entity_only_if_greedy() -> None:
    costs, none_costs = np.array([[1.0, 9.0], [2.0, 9.0], [9.0, 1.0]]), np.full(3, 5.0)
    assert assign(costs, none_costs, matching="raw", rest="greedy").tolist() == [0, 0, 1]
    assert assign(costs, none_costs, matching="raw", rest="none").tolist() == [0, -1, 1]


@pytest.mark.parametrize("rest", ["greedy", "none"])
@pytest.mark.parametrize("matching", ["relative", "raw"])
def test_more_entities_than_proposals(matching: str, rest: str) -> None:
    costs = np.array([[9.0, 1.0, 8.0, 7.0], [9.0, 2.0, 3.0, 7.0]])
    found = assign(costs, np.zeros(2), matching=matching, rest=rest)  # type: ignore[arg-type]
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("rest", ["greedy", "none"])
def test_without_entities_all_proposals_get_none(rest: Rest) -> None:
    for count in (0, 3):
        found = assign(np.zeros((count, 0)), np.ones(count), matching="relative", rest=rest)
        assert found.tolist() == [-1] * count


def test_a_tie_between_an_entity_and_none_gives_none() -> None:
    costs, none_costs = np.array([[1.0], [2.0]]), np.array([5.0, 2.0])
    assert assign(costs, none_costs, matching="raw", rest="greedy").tolist() == [0, -1]


@given(st.integers(0, 10_000), st.sampled_from(["greedy", "none"]))
@settings(max_examples=20)
def test_sentences_of_a_batch_are_assigned_independently(seed: int, rest: Rest) -> None:
    torch.manual_seed(seed)
    costs, none_costs = torch.rand(3, 5, 4) * 5, torch.rand(3, 5) * 5
    spans = torch.arange(5) < torch.tensor([5, 0, 2])[:, None]
    gold = torch.rand(3, 4) < 0.6
    found = assign_batch(costs, none_costs, spans, gold, matching="relative", rest=rest)
    assert (found[~spans] == -1).all()
    for row in range(3):
        columns = gold[row].nonzero()[:, 0]
        own = assign(
            costs[row][spans[row]][:, columns].numpy(),
            none_costs[row][spans[row]].numpy(),
            matching="relative",
            rest=rest,
        )
        named = [-1 if j < 0 else int(columns[j]) for j in own]
        assert found[row][spans[row]].tolist() == named


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_pairs_with_nan_or_infinite_costs_are_avoided(bad: float) -> None:
    costs = torch.tensor([[[bad, 1.0], [2.0, 3.0], [bad, bad]]])
    real, wanted = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    none_costs = torch.full((1, 3), 4.0)
    found = assign_batch(costs, none_costs, real, wanted, matching="relative", rest="greedy")
    assert found.tolist() == [[1, 0, -1]]


def test_each_entity_is_assigned_to_its_cheapest_proposals() -> None:
    costs = torch.tensor([[[1.0, 5.0, 0.0], [2.0, 1.0, 0.0], [3.0, 2.0, 0.0], [9.0, 9.0, 0.0]]])
    spans = torch.tensor([[True, True, True, True]])
    gold = torch.tensor([[True, True, False]])  # the last is padding
    assert nearest(costs, spans, gold, 1).tolist() == [[0, 1, -1, -1]]
    # Both entities choose the second proposal: it gets the one with the lower cost.
    assert nearest(costs, spans, gold, 2).tolist() == [[0, 1, 1, -1]]
    assert nearest(costs, spans, gold, 9).tolist() == [[0, 1, 1, 0]]
    some = torch.tensor([[True, False, True, False]])
    assert nearest(costs, some, gold, 9).tolist() == [[0, -1, 1, -1]]


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 2, 2)])
def test_nearest_without_spans_entities_or_sentences(shape: tuple[int, int, int]) -> None:
    batch, spans, gold = shape
    yes = torch.ones(batch, spans, dtype=torch.bool), torch.ones(batch, gold, dtype=torch.bool)
    assert nearest(torch.zeros(shape), *yes, 2).tolist() == [[-1] * spans] * batch
