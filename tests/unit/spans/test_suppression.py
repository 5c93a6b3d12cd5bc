"""Suppression without candidates, with equal scores, and worked examples."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from spandet.spans.suppression import soft_nms, uncrossed, without_crossing, without_overlap

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]


def sentence(*pairs: tuple[int, int]) -> Tensor:
    return torch.tensor([pairs])


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("may_cross", [True, False])
def test_suppression_without_candidates(batch: int, *, may_cross: bool) -> None:
    spans, scores = torch.zeros(batch, 0, 2, dtype=torch.long), torch.zeros(batch, 0)
    nms = partial(soft_nms, decay=0.5, overlap=0.5, may_cross=may_cross)
    rules: list[Rule] = [nms, without_crossing, without_overlap]
    for rule in rules:
        assert rule(spans, scores, scores > 0).shape == (batch, 0)
    assert uncrossed(spans, scores > 0).shape == (batch, 0)


def test_without_decay_scores_stay_but_crossings_may_be_forbidden() -> None:
    spans, scores = sentence((0, 4), (2, 6), (4, 6)), torch.tensor([[0.9, 0.8, 0.7]])
    real = torch.ones(1, 3, dtype=torch.bool)
    assert soft_nms(spans, scores, real, decay=1.0, overlap=0.1) is scores
    strict = soft_nms(spans, scores, real, decay=1.0, overlap=0.1, may_cross=False)
    assert torch.equal(strict, torch.tensor([[0.9, 0.0, 0.7]]))


def test_a_dropped_candidate_lowers_no_score() -> None:
    # The second crosses the first and overlaps the third, which nothing else overlaps.
    spans, scores = sentence((0, 4), (2, 6), (4, 6)), torch.tensor([[0.9, 0.8, 0.7]])
    real = torch.ones(1, 3, dtype=torch.bool)
    free = soft_nms(spans, scores, real, decay=0.5, overlap=0.5)
    assert free[0].tolist() == pytest.approx([0.9, 0.8, 0.35])
    strict = soft_nms(spans, scores, real, decay=0.5, overlap=0.5, may_cross=False)
    assert strict[0].tolist() == pytest.approx([0.9, 0.0, 0.7])


def test_padding_neither_suppresses_nor_is_kept() -> None:
    spans, scores = sentence((0, 4), (1, 5), (0, 4)), torch.tensor([[0.9, 0.5, 0.3]])
    mask = torch.tensor([[False, True, True]])
    nms = soft_nms(spans, scores, mask, decay=0.5, overlap=0.5)
    assert nms[0].tolist() == pytest.approx([0.9, 0.5, 0.15])
    assert without_overlap(spans, scores, mask).tolist() == [[False, True, False]]
    assert without_crossing(spans, scores, mask).tolist() == [[False, True, False]]
    assert uncrossed(spans, torch.tensor([[True, False, True]])).tolist() == [[True, False, True]]


@pytest.mark.parametrize("rule", [without_crossing, without_overlap])
def test_sentences_with_different_numbers_of_candidates_are_independent(rule: Rule) -> None:
    spans = torch.tensor([[[0, 4], [2, 6], [5, 8]], [[0, 1], [0, 1], [0, 1]]])
    scores = torch.tensor([[0.6, 0.5, 0.4], [0.3, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert rule(spans, scores, mask).tolist() == [[True, False, True], [True, False, False]]


@pytest.mark.parametrize("rule", [without_crossing, without_overlap])
def test_of_many_equal_scores_the_first_is_kept(rule: Rule) -> None:
    # More than 16: torch sorts fewer in a stable way even if not asked to.
    starts = torch.arange(40)
    spans = torch.stack([starts, starts + 2], dim=1)[None]
    scores = torch.full((1, 40), 0.5)
    kept = rule(spans, scores, scores > 0)
    assert kept[0].tolist() == [place % 2 == 0 for place in range(40)]
