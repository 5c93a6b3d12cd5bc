"""Worked examples of span geometry (half-open spans)."""

import pytest
import torch

from spandet.detectors.locate_and_label.seeds import best_gold
from spandet.spans.coordinates import clamped, legal, to_words
from spandet.spans.flat import FlatSpans, distinct, enumerate_spans, from_rows, to_rows
from spandet.spans.overlap import iou, signed_iou
from spandet.tensors import GoldSpans


def spans(*pairs: tuple[float, float]) -> torch.Tensor:
    return torch.tensor(pairs)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 3), (1, 4), 0.5),
        ((2, 3), (2, 3), 1),
        ((0, 2), (2, 4), 0),
        ((0, 10), (2, 9), 0.7),
    ],
)
def test_iou(a: tuple[int, int], b: tuple[int, int], expected: float) -> None:
    assert iou(spans(a), spans(b)).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("predicted", "true", "loss"),
    [((1.0, 4.5), (1, 5), 0.125), ((0, 2), (3, 5), 1.2), ((1, 5), (1, 5), 0)],
)
def test_overlap_loss(predicted: tuple[float, float], true: tuple[int, int], loss: float) -> None:
    a, b = spans(predicted).float(), spans(true).float()
    assert (1 - signed_iou(a, b)).item() == pytest.approx(loss)


def test_an_inverted_span_has_a_gradient_that_repairs_it() -> None:
    predicted = torch.tensor([[4.0, 2.0]], requires_grad=True)
    loss = 1 - signed_iou(predicted, torch.tensor([[1.0, 5.0]]))
    loss.backward()
    assert torch.isfinite(loss).all()
    assert predicted.grad is not None


def test_seeds_are_clipped_and_not_repeated() -> None:
    seeds = enumerate_spans([6], [1, 3])
    singles = [[i, i + 1] for i in range(6)]
    triples = [[0, 3], [1, 4], [2, 5], [3, 6], [4, 6]]
    assert seeds.spans.tolist() == singles + triples
    assert len(seeds.spans) == 11


def test_sentences_without_words_have_no_seeds() -> None:
    seeds = enumerate_spans([0, 1, 0, 2], [1, 2])
    assert seeds.sentence.tolist() == [1, 3, 3, 3]
    assert enumerate_spans([], [1]).spans.shape == (0, 2)


@pytest.mark.parametrize(
    ("offsets", "words", "expected"),
    [
        ((-0.4, 1.6), 6, [1, 6]),
        ((-0.4, 1.6), 5, [1, 5]),
        ((2.7, -0.6), 6, [1, 4]),
        ((-5.0, 0.5), 6, [0, 5]),
    ],
)
def test_adjustment_rounds_up_clamps_and_falls_back(
    offsets: tuple[float, float], words: int, expected: list[int]
) -> None:
    seed = torch.tensor([[1, 4]])
    regressed = to_words(seed + torch.tensor([offsets]))
    assert clamped(regressed, seed, torch.tensor([words])).tolist() == [expected]


def test_spans_that_the_released_code_calls_illegal() -> None:
    regressed = torch.tensor([[1, 6], [4, 3], [-1, 2], [0, 5]])
    assert legal(regressed, torch.full((4,), 5)).tolist() == [False, False, False, True]


def test_rounding_stops_the_gradient() -> None:
    offsets = torch.tensor([[0.2, 0.7]], requires_grad=True)
    assert not to_words(offsets).requires_grad


def test_the_first_of_equal_matches_wins_and_padding_never_does() -> None:
    gold = GoldSpans(
        torch.tensor([[[0, 2], [1, 3], [0, 3]], [[0, 1], [0, 1], [0, 1]]]),
        torch.tensor([[4, 5, 6], [0, 0, 0]]),
        torch.tensor([[True, True, False], [False, False, False]]),
    )
    match = best_gold(FlatSpans(torch.tensor([0, 1]), torch.tensor([[0, 3], [0, 1]])), gold)
    assert match.labels[0] == 4
    assert match.iou.tolist() == pytest.approx([2 / 3, 0])


def test_rows_are_padded_at_the_end() -> None:
    rows, mask = to_rows(torch.tensor([7, 8, 9]), torch.tensor([0, 2, 2]), 4)
    assert rows.tolist() == [[7, 0], [0, 0], [8, 9], [0, 0]]
    assert mask.tolist() == [[True, False], [False, False], [True, True], [False, False]]


def test_distinct_spans_have_no_duplicates() -> None:
    parts = [
        FlatSpans(torch.tensor([1, 0]), torch.tensor([[0, 2], [0, 2]])),
        FlatSpans(torch.tensor([0, 0, 1]), torch.tensor([[0, 2], [3, 7], [0, 2]])),
        FlatSpans(torch.zeros(0, dtype=torch.long), torch.zeros(0, 2, dtype=torch.long)),
    ]
    found = distinct(parts)
    assert found.sentence.tolist() == [0, 0, 1]
    assert found.spans.tolist() == [[0, 2], [3, 7], [0, 2]]
    assert len(distinct(parts[2:]).sentence) == 0


def test_rows_become_one_list_in_order_without_padding() -> None:
    rows = torch.tensor([[[0, 2], [1, 3]], [[4, 5], [0, 0]]])
    every = from_rows(rows)
    assert every.sentence.tolist() == [0, 0, 1, 1]
    assert every.spans.tolist() == rows.flatten(0, 1).tolist()
    real = from_rows(rows, torch.tensor([[False, True], [True, False]]))
    assert (real.sentence.tolist(), real.spans.tolist()) == ([0, 1], [[1, 3], [4, 5]])
