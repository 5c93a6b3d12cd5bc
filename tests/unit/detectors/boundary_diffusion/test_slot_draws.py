"""The slots of a training step: exact contents and distributions."""

import pytest
import torch

from spandet.detectors.boundary_diffusion.noise import KeyedNoise
from spandet.detectors.boundary_diffusion.slots import Slots, draw_slots
from spandet.seeding import generator
from spandet.spans.counts import candidate_counts
from spandet.spans.flat import count_mask


def drawn(counts: list[int], golds: list[int], *, copies: int | None, draws: int = 2) -> Slots:
    own = [generator("slots", number) for number in range(len(counts))]
    return draw_slots(own, counts, golds, draws=draws, copies=copies, levels=10)


def test_a_slot_is_a_copy_of_an_entity_a_numbered_filler_or_padding() -> None:
    slots = drawn([4, 3, 0], [1, 0, 0], copies=2)
    assert slots.origin.tolist() == [[[0, 0, -1, -1]] * 2, [[-1] * 4] * 2, [[-1] * 4] * 2]
    assert slots.fill.tolist() == [[[-1, -1, 0, 1]] * 2, [[0, 1, 2, -1]] * 2, [[-1] * 4] * 2]
    assert slots.mask.tolist() == [[True] * 4, [True] * 3 + [False], [False] * 4]


def test_with_equally_many_copies_only_a_sentence_without_entities_has_free_slots() -> None:
    slots = drawn([3, 3], [0, 1], copies=None)
    assert slots.origin.tolist() == [[[-1] * 3] * 2, [[0] * 3] * 2]
    assert slots.fill.tolist() == [[[0, 1, 2]] * 2, [[-1] * 3] * 2]


def test_random_pairs_are_normal_around_the_middle_of_the_sentence() -> None:
    slots = drawn([400, 1], [0, 0], copies=1, draws=3)
    for values, mean, spread in ((slots.random, 0.5, 1 / 6), (slots.noise, 0.0, 1.0)):
        own = values[0].flatten(0, 1)
        assert own.mean(dim=0).tolist() == pytest.approx([mean] * 2, abs=0.1 * spread)
        assert own.std(dim=0).tolist() == pytest.approx([spread] * 2, rel=0.1)
        assert abs(torch.corrcoef(own.T)[0, 1].item()) < 0.1  # two numbers, not one twice
        assert torch.equal(values[1, :, 1:], torch.full_like(values[1, :, 1:], mean))  # padding
    both = torch.stack([slots.random[0].ravel(), slots.noise[0].ravel()])
    assert abs(torch.corrcoef(both)[0, 1].item()) < 0.1


def test_the_noise_of_prediction_is_normal_in_both_numbers() -> None:
    noise = KeyedNoise([generator("one")]).at(0, [500])[0]
    assert noise.mean(dim=0).tolist() == pytest.approx([0, 0], abs=0.15)
    assert noise.std(dim=0).tolist() == pytest.approx([1, 1], rel=0.1)
    assert abs(torch.corrcoef(noise.T)[0, 1].item()) < 0.15
    assert len(noise.unique(dim=0)) == 500  # no block is a copy of another


def test_the_noise_of_sentences_differs() -> None:
    many = KeyedNoise([generator("sentence", number) for number in range(300)])
    assert len(many.at(0, [1] * 300).unique(dim=0)) == 300


def test_numbers_of_generators_and_of_counts_must_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        KeyedNoise([generator("one")]).at(0, [1, 1])
    with pytest.raises(ValueError, match="zip"):
        draw_slots([generator("one")], [1, 1], [0, 0], draws=1, copies=1, levels=2)


@pytest.mark.parametrize("levels", [1, 7])
def test_all_levels_are_drawn_and_no_others(levels: int) -> None:
    own = [generator("levels", number) for number in range(40)]
    drawn_levels = draw_slots(own, [1] * 40, [0] * 40, draws=5, copies=1, levels=levels).levels
    assert set(drawn_levels.ravel().tolist()) == set(range(levels))
    assert (drawn_levels.diff(dim=1) >= 0).all()


def test_there_is_a_column_even_if_no_sentence_has_slots() -> None:
    assert count_mask([0, 0]).tolist() == [[False], [False]]
    assert count_mask([2, 0, 1]).tolist() == [[True, True], [False, False], [True, False]]
    assert drawn([0], [0], copies=1).origin.tolist() == [[[-1], [-1]]]


def test_there_are_at_most_as_many_slots_as_spans() -> None:
    lengths = [0, 1, 2, 3, 4]
    assert candidate_counts(lengths, None, 0.0, 7) == [0, 1, 3, 6, 7]
    assert candidate_counts(lengths, None, 1.5, 0) == [0, 1, 3, 4, 6]
