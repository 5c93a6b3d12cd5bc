"""Span geometry in cases that random spans rarely hit: borders, ties, empty input."""

import numpy as np
import pytest
import torch

from spandet.detectors.boundary_diffusion.noise import (
    NoiseLevels,
    denoised,
    gains,
    low_discrepancy,
    noise_levels,
)
from spandet.seeding import generator
from spandet.spans.assignment import assign_batch, by_sentence, nearest
from spandet.spans.choices import Divisor, State
from spandet.spans.coordinates import clamped, legal, to_latents, to_spans
from spandet.spans.flat import FlatSpans, distinct, enumerate_spans, to_rows
from spandet.spans.overlap import iou, signed_iou
from spandet.spans.pooling import RangeMaximum, RangeMean

LENGTHS = torch.tensor([5, 5, 5])


@pytest.mark.parametrize(
    ("state", "divisor", "latents"),
    [
        ("ends", "last", [[-2.0, -2.0], [-1.0, 1.0], [2.0, 2.0]]),
        ("width", "last", [[-2.0, -2.0], [-1.0, 0.0], [2.0, -2.0]]),
        ("ends", "length", [[-2.0, -2.0], [-1.2, 0.4], [1.2, 1.2]]),
    ],
)
def test_latents_are_shares_of_the_sentence(
    state: State, divisor: Divisor, latents: list[list[float]]
) -> None:
    spans = torch.tensor([[0, 1], [1, 4], [4, 5]])
    got = to_latents(spans, LENGTHS, scale=2.0, state=state, divisor=divisor)
    torch.testing.assert_close(got, torch.tensor(latents))
    assert torch.equal(to_spans(got, LENGTHS, scale=2.0, state=state, divisor=divisor), spans)


def test_latents_outside_the_range_are_clamped_and_inverted_ends_swapped() -> None:
    points = torch.tensor([[9.0, -9.0], [1.0, -1.0], [-9.0, -9.0]])
    assert to_spans(points, LENGTHS, scale=2.0, state="ends").tolist() == [[0, 5], [1, 4], [0, 1]]
    assert to_spans(points, LENGTHS, scale=2.0, state="width").tolist() == [[4, 5], [3, 5], [0, 1]]
    whole = to_spans(points, LENGTHS, scale=2.0, state="ends", divisor="length").tolist()
    assert whole == [[0, 5], [1, 5], [0, 1]]
    one = to_latents(torch.tensor([[0, 1]]), torch.tensor([1]), scale=1.0, state="ends")
    assert one.tolist() == [[-1.0, -1.0]]  # a sentence of one word has no last word to divide by


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0, 5), [0, 5]), ((-3, 9), [0, 5]), ((4, 5), [4, 5]), ((7, 9), [4, 5]), ((3, 3), [1, 2])],
)
def test_a_span_is_clamped_to_its_sentence(span: tuple[int, int], expected: list[int]) -> None:
    got = clamped(torch.tensor([span]), torch.tensor([[1, 2]]), torch.tensor([5]))
    assert got.tolist() == [expected]


def test_a_span_before_its_sentence_becomes_its_first_word() -> None:
    got = clamped(torch.tensor([[-4, -2]]), torch.tensor([[1, 2]]), torch.tensor([5]))
    assert got.tolist() == [[0, 1]]


def test_legal_spans_are_not_empty_and_inside_the_sentence() -> None:
    spans = torch.tensor([[0, 1], [4, 5], [0, 5], [0, 0], [-1, 1], [4, 6], [3, 2]])
    assert legal(spans, torch.full((7,), 5)).tolist() == [True] * 3 + [False] * 4


def test_touching_spans_share_nothing_and_an_empty_span_has_no_overlap() -> None:
    a, b = torch.tensor([[0, 2], [0, 3], [2, 2]]), torch.tensor([[2, 4], [2, 4], [2, 2]])
    assert iou(a, b).tolist() == [0.0, 0.25, 0.0]


@pytest.mark.parametrize(
    ("span", "expected"), [((4.0, 2.0), 0.0), ((6.0, 8.0), -1 / 7), ((2.0, 3.0), 0.25)]
)
def test_generalised_overlap_of_real_valued_spans(
    span: tuple[float, float], expected: float
) -> None:
    got = signed_iou(torch.tensor([span]), torch.tensor([[1.0, 5.0]]))
    assert got.item() == pytest.approx(expected)
    same = signed_iou(torch.tensor([[3.0, 3.0]]), torch.tensor([[3.0, 3.0]]))
    assert same.item() == 0.0  # and no division by 0


def test_seeds_that_are_not_clipped_have_their_whole_length() -> None:
    whole = enumerate_spans([3, 1], [2, 3], clip=False)
    assert whole.sentence.tolist() == [0, 0, 0]
    assert whole.spans.tolist() == [[0, 2], [1, 3], [0, 3]]


def test_rows_of_no_sentences_and_of_pairs() -> None:
    rows, mask = to_rows(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), 0)
    assert (rows.shape, mask.shape) == ((0, 0, 2), (0, 0))
    rows, mask = to_rows(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]), 2)
    assert rows.tolist() == [[[0, 0], [0, 0]], [[1, 2], [3, 4]]]
    assert mask.tolist() == [[False, False], [True, True]]


def test_distinct_spans_are_in_order_of_sentence_start_and_end() -> None:
    found = distinct(
        [FlatSpans(torch.tensor([2, 0, 0, 0]), torch.tensor([[0, 9], [8, 9], [0, 9], [0, 1]]))]
    )
    assert found.sentence.tolist() == [0, 0, 0, 2]
    assert found.spans.tolist() == [[0, 1], [0, 9], [8, 9], [0, 9]]


def test_an_entity_is_never_assigned_to_padding() -> None:
    costs = torch.tensor([[[3.0, 1.0], [2.0, 5.0], [1.0, 9.0]]])
    everyone = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    assert nearest(costs, *everyone, 1).tolist() == [[1, -1, 0]]
    assert nearest(costs, *everyone, 2).tolist() == [[1, 0, 0]]
    assert nearest(costs, *everyone, 3).tolist() == [[1, 0, 0]]
    assert nearest(costs.transpose(1, 2), *everyone[::-1], 1).tolist() == [[2, 0]]
    no_spans = torch.zeros(1, 3, dtype=torch.bool)
    assert nearest(costs, no_spans, everyone[1], 2).tolist() == [[-1, -1, -1]]


def test_masked_entities_do_not_shift_the_index_of_the_others() -> None:
    costs = torch.tensor([[[9.0, 9.0, 1.0], [9.0, 2.0, 9.0], [9.0, 9.0, 9.0]]])
    gold, real = torch.tensor([[False, True, True]]), torch.tensor([[True, True, True]])
    found = assign_batch(costs, torch.ones(1, 3), real, gold, matching="raw", rest="none")
    assert found.tolist() == [[2, 1, -1]]


def test_a_sentence_without_spans_or_entities_is_not_solved() -> None:
    def solve(_: np.ndarray) -> np.ndarray:
        raise AssertionError

    none = torch.zeros(2, 1, dtype=torch.bool)
    real = torch.tensor([[True], [False]])
    assert by_sentence(solve, real, ~real, torch.zeros(2, 1, 1)).tolist() == [[-1], [-1]]
    assert by_sentence(solve, none, none, torch.zeros(2, 1, 1)).tolist() == [[-1], [-1]]


def test_a_step_without_eta_takes_no_fresh_noise() -> None:
    table = noise_levels("cosine", 100)
    now, then = table.at(torch.tensor(70)), table.at(torch.tensor(30))
    latents, clean, fresh = (torch.randn(8, generator=generator(name)) for name in "abc")
    usual = denoised(latents, clean, now, then)
    assert torch.equal(denoised(latents, clean, now, then, fresh=fresh), usual)
    assert torch.equal(denoised(latents, clean, now, then, eta=1.0), usual)
    assert not torch.equal(denoised(latents, clean, now, then, eta=0.5, fresh=fresh), usual)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_a_step_by_hand(eta: float) -> None:
    now = NoiseLevels(torch.tensor(0.6), torch.tensor(0.8))
    then = NoiseLevels(torch.tensor(0.8), torch.tensor(0.6))
    latents, clean, fresh = torch.tensor(1.0), torch.tensor(0.5), torch.tensor(-2.0)
    old = (1.0 - 0.6 * 0.5) / 0.8
    drawn = eta * (1 - (0.6 / 0.8) ** 2) ** 0.5 * 0.6 / 0.8
    expected = 0.8 * 0.5 + (0.36 - drawn**2) ** 0.5 * old + drawn * -2.0
    assert denoised(latents, clean, now, then, eta=eta, fresh=fresh).item() == pytest.approx(
        expected
    )


def test_gains_and_even_noise_by_hand() -> None:
    table = NoiseLevels(torch.tensor([1.0, 0.6]), torch.tensor([0.0, 0.8]))
    got = gains(table, 3.0)
    assert got.tolist() == pytest.approx([1.0, (3 / (0.36 * 3 + 0.64)) ** 0.5])
    shares = torch.special.ndtr(low_discrepancy(2).double())
    expected = [[0.254878, 0.069840], [0.009755, 0.639681]]
    torch.testing.assert_close(shares, torch.tensor(expected).double(), rtol=0, atol=1e-5)


def test_maxima_over_all_lengths_and_positions() -> None:
    features = torch.randn(2, 9, 2, generator=generator("maxima"))
    spans = FlatSpans(
        torch.tensor([0, 1]).repeat_interleave(45), enumerate_spans([9, 9], range(1, 10)).spans
    )
    got = RangeMaximum(features, 9).inside(spans)
    for row, sentence, (start, end) in zip(got, spans.sentence, spans.spans.tolist(), strict=True):
        assert torch.equal(row, features[sentence, start:end].amax(dim=0))


def test_the_mean_of_an_empty_span_is_zero_and_half_precision_stays() -> None:
    features = torch.ones(1, 3000, 1, dtype=torch.float16)
    means = RangeMean(features)
    got = means.inside(torch.tensor([[[4, 4], [0, 3000], [2999, 3000]]]))
    assert got.dtype == torch.float16
    assert got[0, :, 0].tolist() == [0.0, 1.0, 1.0]
