"""Suppression without candidates, with equal scores, and worked examples."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from spandet.inference.suppression import (
    crosses,
    iou,
    overlaps,
    soft_nms,
    uncrossed,
    without_crossing,
    without_overlap,
)

Rule = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def sentence(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([pairs])


def scored(*scores: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one sentence, and a mask without padding."""
    return np.array([scores], dtype=np.float32), np.ones((1, len(scores)), dtype=bool)


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("may_cross", [True, False])
def test_suppression_without_candidates(batch: int, *, may_cross: bool) -> None:
    spans, scores = np.zeros((batch, 0, 2), dtype=np.int64), np.zeros((batch, 0))
    nms = partial(soft_nms, decay=0.5, overlap=0.5, may_cross=may_cross)
    rules: list[Rule] = [nms, without_crossing, without_overlap]
    for rule in rules:
        assert rule(spans, scores, scores > 0).shape == (batch, 0)
    assert uncrossed(spans, scores > 0).shape == (batch, 0)


def test_without_decay_scores_stay_but_crossings_may_be_forbidden() -> None:
    spans, (scores, real) = sentence((0, 4), (2, 6), (4, 6)), scored(0.9, 0.8, 0.7)
    assert soft_nms(spans, scores, real, decay=1.0, overlap=0.1) is scores
    strict = soft_nms(spans, scores, real, decay=1.0, overlap=0.1, may_cross=False)
    assert np.array_equal(strict, scored(0.9, 0.0, 0.7)[0])


def test_a_dropped_candidate_lowers_no_score() -> None:
    # The second crosses the first and overlaps the third, which nothing else overlaps.
    spans, (scores, real) = sentence((0, 4), (2, 6), (4, 6)), scored(0.9, 0.8, 0.7)
    free = soft_nms(spans, scores, real, decay=0.5, overlap=0.5)
    assert free[0].tolist() == pytest.approx([0.9, 0.8, 0.35])
    strict = soft_nms(spans, scores, real, decay=0.5, overlap=0.5, may_cross=False)
    assert strict[0].tolist() == pytest.approx([0.9, 0.0, 0.7])
    assert np.array_equal(scores, scored(0.9, 0.8, 0.7)[0])  # the argument is not changed


def test_padding_neither_suppresses_nor_is_kept() -> None:
    spans, (scores, _) = sentence((0, 4), (1, 5), (0, 4)), scored(0.9, 0.5, 0.3)
    mask = np.array([[False, True, True]])
    nms = soft_nms(spans, scores, mask, decay=0.5, overlap=0.5)
    assert nms[0].tolist() == pytest.approx([0.9, 0.5, 0.15])
    assert without_overlap(spans, scores, mask).tolist() == [[False, True, False]]
    assert without_crossing(spans, scores, mask).tolist() == [[False, True, False]]
    assert uncrossed(spans, np.array([[True, False, True]])).tolist() == [[True, False, True]]


@pytest.mark.parametrize("rule", [without_crossing, without_overlap])
def test_sentences_with_different_numbers_of_candidates_are_independent(rule: Rule) -> None:
    spans = np.array([[[0, 4], [2, 6], [5, 8]], [[0, 1], [0, 1], [0, 1]]])
    scores = np.array([[0.6, 0.5, 0.4], [0.3, 0.0, 0.0]])
    mask = np.array([[True, True, True], [True, False, False]])
    assert rule(spans, scores, mask).tolist() == [[True, False, True], [True, False, False]]


@pytest.mark.parametrize("rule", [without_crossing, without_overlap])
def test_of_many_equal_scores_the_first_is_kept(rule: Rule) -> None:
    starts = np.arange(40)
    spans = np.stack([starts, starts + 2], axis=1)[None]
    kept = rule(spans, *scored(*[0.5] * 40))
    assert kept[0].tolist() == [place % 2 == 0 for place in range(40)]


def test_an_overlap_of_exactly_the_minimum_counts_in_the_paper_only() -> None:
    # In float64, 3 / 5 words is 0.6 as well; in float32 both are rounded equally.
    spans, (scores, real) = sentence((0, 5), (0, 3)), scored(0.9, 0.8)
    paper = soft_nms(spans, scores, real, decay=0.5, overlap=0.6)
    released = soft_nms(spans, scores, real, decay=0.5, overlap=0.6, rule="released-code")
    assert paper[0].tolist() == pytest.approx([0.9, 0.4])
    assert released[0].tolist() == pytest.approx([0.9, 0.8])


def test_crossing_is_neither_nesting_nor_touching() -> None:
    a = np.array([(0, 4), (0, 4), (0, 4), (0, 4), (2, 6)])
    b = np.array([(2, 6), (1, 3), (4, 6), (0, 4), (0, 4)])
    assert crosses(a, b).tolist() == [True, False, False, False, True]


def test_touching_spans_share_nothing_and_an_empty_span_has_no_overlap() -> None:
    a, b = np.array([[0, 2], [0, 3], [2, 2]]), np.array([[2, 4], [2, 4], [2, 2]])
    assert overlaps(a, b).tolist() == [False, True, False]
    assert iou(a, b).tolist() == [0.0, 0.25, 0.0]
