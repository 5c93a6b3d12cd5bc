"""Slots: their number, their noise, and their assignment to entities."""

from itertools import permutations

import pytest
import torch
from torch import Generator

from spandet.detectors.boundary_diffusion.noise import KeyedNoise
from spandet.detectors.boundary_diffusion.slots import (
    Slots,
    draw_slots,
    match_slots,
    overlapped,
    slot_costs,
)
from spandet.seeding import generator
from spandet.spans.counts import candidate_counts
from spandet.tensors import GoldSpans


def rngs(*names: str) -> list[Generator]:
    return [generator(name) for name in names]


def drawn(counts: list[int], golds: list[int], *, copies: int | None, draws: int = 3) -> Slots:
    names = [f"{slots}/{gold}" for slots, gold in zip(counts, golds, strict=True)]
    return draw_slots(rngs(*names), counts, golds, draws=draws, copies=copies, levels=1000)


def test_repetition_gives_every_entity_equally_many_slots() -> None:
    origin = drawn([10, 10, 10], [3, 20, 10], copies=None).origin
    for draw in range(3):
        counts = torch.bincount(origin[0, draw], minlength=3).tolist()
        assert sorted(counts) == [3, 3, 4]
        assert len(set(origin[1, draw].tolist())) == 10
        assert sorted(origin[2, draw].tolist()) == list(range(10))
    names = [f"sentence {number}" for number in range(20)]
    many = draw_slots(rngs(*names), [10] * 20, [3] * 20, draws=1, copies=None, levels=10).origin
    spared = {torch.bincount(row[0], minlength=3).argmax().item() for row in many}
    assert spared == {0, 1, 2}  # the entity with one more is random


@pytest.mark.parametrize("copies", [1, 2])
def test_slots_that_are_no_copies_are_numbered(copies: int) -> None:
    slots = drawn([6, 6, 6, 1, 0], [2, 0, 9, 1, 0], copies=copies)
    made = (slots.origin >= 0).sum(dim=2)
    assert made[:, 0].tolist() == [2 * copies, 0, 6, 1, 0]
    for row in range(5):
        rest = slots.fill[row, 0][slots.fill[row, 0] >= 0].tolist()
        assert rest == list(range(len(rest)))
        assert len(rest) + made[row, 0] == slots.mask[row].sum()
    assert not ((slots.origin >= 0) & (slots.fill >= 0)).any()
    assert len(set(slots.origin[2, 0].tolist())) == 6


def test_the_draws_of_a_sentence_cover_the_noise_levels() -> None:
    levels = drawn([2] * 8, [1] * 8, copies=1, draws=4).levels
    assert torch.equal(levels // 250, torch.arange(4).expand(8, 4))


def test_a_sentence_gets_the_same_draws_in_any_batch() -> None:
    alone = drawn([5], [2], copies=2)
    batch = drawn([9, 5, 3], [4, 2, 1], copies=2)
    for name in ("origin", "fill", "random", "noise"):
        assert torch.equal(getattr(batch, name)[1, :, :5], getattr(alone, name)[0]), name
    assert torch.equal(batch.levels[1], alone.levels[0])


def test_noise_depends_only_on_sentence_step_and_slot() -> None:
    few = KeyedNoise(rngs("a", "b"))
    many = KeyedNoise(rngs("b", "c", "a"))
    for step in (0, 3, 1):  # in any order
        ours, theirs = few.at(step, [5, 20]), many.at(step, [90, 1, 200])
        assert torch.equal(ours[0, :5], theirs[2, :5])
        assert torch.equal(ours[1, :20], theirs[0, :20])
    assert not torch.equal(few.at(1, [5, 5]), few.at(2, [5, 5]))
    assert few.at(0, [0, 0]).shape == (2, 1, 2)


def test_the_number_of_slots_follows_the_length_or_is_fixed() -> None:
    lengths = [0, 1, 2, 10, 40]
    assert candidate_counts(lengths, None, 0.5, 8) == [0, 1, 3, 13, 28]
    assert candidate_counts(lengths, 60, 0.5, 8) == [0, 60, 60, 60, 60]


@pytest.mark.parametrize("slots", [1, 2, 4, 5])
@pytest.mark.parametrize("entities", [1, 3, 4])
def test_matching_has_the_least_cost_of_all_permutations(slots: int, entities: int) -> None:
    costs = torch.rand(1, slots, entities, generator=generator(slots, entities))
    everyone = torch.ones(1, slots, dtype=torch.bool), torch.ones(1, entities, dtype=torch.bool)
    assigned = match_slots(costs, *everyone, per_entity=1)[0].tolist()
    pairs = [(slot, entity) for slot, entity in enumerate(assigned) if entity >= 0]
    assert len(pairs) == min(slots, entities) == len({entity for _, entity in pairs})
    got = sum(costs[0, slot, entity].item() for slot, entity in pairs)
    if slots >= entities:
        orders = permutations(range(slots), entities)
        best = min(sum(costs[0, s, e].item() for e, s in enumerate(order)) for order in orders)
    else:
        orders = permutations(range(entities), slots)
        best = min(sum(costs[0, s, e].item() for s, e in enumerate(order)) for order in orders)
    assert got == pytest.approx(best)


def test_masked_slots_and_entities_are_not_matched() -> None:
    costs = torch.zeros(2, 3, 2)
    free = torch.tensor([[True, False, True], [False, False, False]])
    gold = torch.tensor([[True, False], [True, True]])
    assigned = match_slots(costs, free, gold, per_entity=2)
    assert sorted(assigned[0].tolist()) == [-1, 0, 0]
    assert assigned[0, 1] == -1
    assert assigned[1].tolist() == [-1, -1, -1]


def test_with_full_repetition_every_slot_has_an_entity() -> None:
    costs = torch.rand(1, 7, 3, generator=generator("costs"))
    everyone = torch.ones(1, 7, dtype=torch.bool), torch.tensor([[True, False, True]])
    assigned = match_slots(costs, *everyone, per_entity=None)
    assert sorted(torch.bincount(assigned[0], minlength=3).tolist()) == [0, 3, 4]
    none = match_slots(torch.zeros(1, 7, 0), everyone[0], torch.zeros(1, 0) > 0, per_entity=None)
    assert (none == -1).all()


@pytest.mark.parametrize("per_entity", [1, 2, None])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_pairs_with_nan_or_infinite_costs_are_avoided(bad: float, per_entity: int | None) -> None:
    costs = torch.tensor([[[bad, 1.0], [2.0, bad]], [[bad, bad], [bad, bad]]])
    everyone = torch.ones(2, 2, dtype=torch.bool), torch.ones(2, 2, dtype=torch.bool)
    assigned = match_slots(costs, *everyone, per_entity=per_entity)
    assert assigned[0].tolist() == [1, 0]
    assert set(assigned[1].tolist()) <= {0, 1}  # any entity, and no exception


def test_costs_are_minus_the_probabilities_of_the_entity() -> None:
    first, last, label = (torch.rand(1, 2, 5, generator=generator(name)) for name in "abc")
    gold = GoldSpans(torch.tensor([[[1, 4]]]), torch.tensor([[2]]), torch.tensor([[True]]))
    costs = slot_costs(first, last, label, gold)
    assert costs[0, 1, 0] == -(first[0, 1, 1] + last[0, 1, 3] + label[0, 1, 2])


def test_a_slot_is_assigned_the_entity_that_it_overlaps_most() -> None:
    gold = GoldSpans(
        torch.tensor([[[0, 4], [1, 3], [8, 9]]]),
        torch.tensor([[1, 1, 0]]),
        torch.tensor([[True, True, False]]),
    )
    spans = torch.tensor([[[0, 5], [1, 2], [8, 9], [1, 3]]])
    free = torch.tensor([[True, True, True, False]])
    assert overlapped(spans, free, gold)[0].tolist() == [0, 1, -1, -1]
