"""Target entity of each span, and the choice of training spans, compared with plain loops."""

import pytest
import torch
from torch import Tensor

from spandet.detectors.boundary_diffusion.slots import overlapped
from spandet.detectors.locate_and_label.seeds import (
    Match,
    _any_by_sentence,
    _best_seeds,
    _first_labels,
    best_gold,
    draw,
    pairwise_iou,
)
from spandet.seeding import generator
from spandet.spans.flat import FlatSpans
from spandet.tensors import GoldSpans

# Two sentences: in the first, two entities share a span; the second has padding only.
GOLD = GoldSpans(
    torch.tensor([[[2, 4], [2, 4], [6, 9]], [[0, 1], [0, 1], [0, 1]]]),
    torch.tensor([[3, 1, 2], [0, 0, 0]]),
    torch.tensor([[True, True, True], [False, False, False]]),
)
SPANS = FlatSpans(
    torch.tensor([0, 0, 0, 0, 1]), torch.tensor([[2, 4], [1, 4], [7, 9], [9, 11], [0, 1]])
)


def nothing_gold(batch: int) -> GoldSpans:
    labels = torch.zeros(batch, 0, dtype=torch.long)
    return GoldSpans(torch.zeros(batch, 0, 2, dtype=torch.long), labels, labels > 0)


def rows(match: Match) -> list[tuple[float, list[int], int]]:
    """Overlap, span and label of each match."""
    own = (match.iou.tolist(), match.spans.tolist(), match.labels.tolist())
    return [(round(iou, 4), span, label) for iou, span, label in zip(*own, strict=True)]


def test_a_match_has_the_overlap_the_span_and_the_label_of_its_entity() -> None:
    match = best_gold(SPANS, GOLD)
    nothing = (0.0, [0, 0], 0)
    expected = [(1.0, [2, 4], 3), (0.6667, [2, 4], 3), (0.6667, [6, 9], 2), nothing, nothing]
    assert rows(match) == expected


def test_without_entities_nothing_matches() -> None:
    assert rows(best_gold(SPANS, nothing_gold(2))) == [(0.0, [0, 0], 0)] * 5
    spans = SPANS.spans[None, :3]
    free = torch.ones(1, 3, dtype=torch.bool)
    assert overlapped(spans, free, nothing_gold(1)).tolist() == [[-1, -1, -1]]


def test_a_slot_takes_the_first_of_the_entities_that_it_overlaps_most() -> None:
    spans = torch.tensor([[[1, 4], [7, 9], [9, 11], [6, 9]], [[0, 1], [0, 2], [4, 5], [0, 9]]])
    free = torch.tensor([[True, True, True, False], [True] * 4])
    assert overlapped(spans, free, GOLD).tolist() == [[0, 2, -1, -1], [-1] * 4]


def test_of_several_labels_on_a_span_one_is_the_first() -> None:
    assert _first_labels(GOLD).tolist() == [[True, False, True], [False, False, False]]
    # The same start or the same end alone is another span, and padding is no entity.
    spans = torch.tensor([[[0, 1], [0, 2], [1, 2], [0, 1], [0, 2]]])
    mask = torch.tensor([[False, True, True, True, True]])
    other = GoldSpans(spans, mask.long(), mask)
    assert _first_labels(other).tolist() == [[False, True, True, True, False]]


def test_which_entities_are_hit_by_a_span_of_their_sentence() -> None:
    hits = torch.tensor([[True, False], [True, False], [False, False], [False, True]])
    got = _any_by_sentence(hits, torch.tensor([0, 0, 1, 3]), 4)
    assert got.tolist() == [[True, False], [False, False], [False, False], [False, True]]


def seeds(shared: Tensor, sentence: list[int], gold: GoldSpans, enough: float) -> list[bool]:
    return _best_seeds(shared, torch.tensor(sentence), gold, enough).tolist()


def test_an_entity_that_no_seed_overlaps_enough_has_its_best_ones() -> None:
    # The first entity has a good seed; the best two of the second are equal; the third has none.
    shared = torch.tensor([[0.9, 0.5, 0.0], [0.4, 0.5, 0.0], [0.2, 0.1, 0.0], [0.0, 0.0, 0.0]])
    gold = GoldSpans(torch.zeros(1, 3, 2).long(), torch.ones(1, 3).long(), torch.ones(1, 3) > 0)
    assert seeds(shared, [0] * 4, gold, 0.6) == [True, True, False, False]
    assert seeds(shared, [0] * 4, gold, 0.5) == [True, True, False, False]  # 0.5 is not enough
    assert seeds(shared, [0] * 4, gold, 0.4) == [False] * 4
    hidden = GoldSpans(gold.spans, gold.labels, torch.tensor([[True, False, True]]))
    assert seeds(shared, [0] * 4, hidden, 0.6) == [False] * 4


def test_best_seeds_are_found_sentence_by_sentence() -> None:
    gold = GoldSpans(torch.zeros(2, 1, 2).long(), torch.ones(2, 1).long(), torch.ones(2, 1) > 0)
    shared = torch.tensor([[0.3], [0.2], [0.25], [0.1]])
    assert seeds(shared, [0, 0, 1, 1], gold, 0.5) == [True, False, True, False]


def test_overlaps_with_padding_are_zero() -> None:
    got = pairwise_iou(SPANS, GOLD)
    assert got[4].tolist() == [0, 0, 0]
    assert got[1].tolist() == pytest.approx([2 / 3, 2 / 3, 0])


def test_nothing_is_drawn_from_an_empty_set() -> None:
    none = torch.zeros(0, dtype=torch.long)
    assert draw(none > 0, none, torch.zeros(0), []).tolist() == []


def test_a_draw_needs_a_generator_for_each_sentence() -> None:
    sentence, able = torch.tensor([0, 1]), torch.tensor([True, True])
    with pytest.raises(ValueError, match="zip"):
        draw(able, sentence, torch.ones(2), [generator("only one")])
