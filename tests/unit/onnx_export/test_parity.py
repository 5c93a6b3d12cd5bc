"""The parity check: what passes, and what does not."""

from __future__ import annotations

import pytest

from spandet.onnx_export.parity import Parity, compare
from spandet.text import CharSpan, Document, Entity

TEXT = "one two three four five"
Found = tuple[int, int, str, float]


def document(*found: Found) -> Document:
    entities = (Entity(CharSpan(a, b), label, score) for a, b, label, score in found)
    return Document(TEXT, tuple(entities))


def compared(expected: list[Found], found: list[Found]) -> Parity:
    return compare([document(*expected)], [document(*found)], threshold=0.5, bound=1e-4)


def test_equal_predictions_pass() -> None:
    result = compared(
        [(0, 3, "A", 0.9), (4, 7, "B", 0.8)], [(4, 7, "B", 0.80004), (0, 3, "A", 0.9)]
    )
    assert result.passed
    assert result.entities == 2
    assert result.largest == pytest.approx(4e-5)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [(0, 3, "A", 0.9), (4, 7, "B", 0.8)],
        [(0, 3, "B", 0.9)],
        [(0, 7, "A", 0.95)],
    ],
    ids=["missing", "more", "other label, another score elsewhere", "other boundaries"],
)
def test_other_entities_do_not_pass(found: list[Found]) -> None:
    result = compared([(0, 3, "A", 0.7), (8, 13, "C", 0.9)], [(8, 13, "C", 0.9), *found])
    assert not result.passed
    assert result.different
    assert "predicted by one model only" in result.reason


def test_scores_too_far_apart_do_not_pass() -> None:
    result = compared([(0, 3, "A", 0.9)], [(0, 3, "A", 0.8998)])
    assert not result.passed
    assert "differ by up to 2.0e-04" in result.reason


def test_a_score_at_the_threshold_is_a_tie() -> None:
    result = compared([(0, 3, "A", 0.9), (4, 7, "B", 0.50005)], [(0, 3, "A", 0.9)])
    assert result.passed
    assert result.ties == 1


def test_overlapping_entities_of_equal_score_are_ties() -> None:
    result = compared(
        [(0, 3, "A", 0.9), (4, 13, "B", 0.7)], [(0, 3, "A", 0.9), (8, 18, "C", 0.70005)]
    )
    assert result.passed
    assert result.ties == 2


def test_entities_of_equal_score_elsewhere_are_no_ties() -> None:
    result = compared([(0, 3, "A", 0.9), (4, 7, "B", 0.7)], [(0, 3, "A", 0.9), (8, 13, "B", 0.7)])
    assert len(result.different) == 2


def test_predictions_without_entities_do_not_pass() -> None:
    result = compared([], [])
    assert not result.passed
    assert "nothing was compared" in result.reason
