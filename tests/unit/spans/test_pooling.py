"""Vectors of spans against pooling by hand."""

import torch

from spandet.seeding import generator
from spandet.spans.pooling import RangeMean, RowMaximum


def test_pooling_in_rows_equals_pooling_by_hand() -> None:
    features = torch.randn(2, 9, 4, generator=generator("features"))
    spans = torch.tensor([[[0, 9], [3, 4], [2, 7]], [[8, 9], [0, 1], [4, 9]]])
    means, maxima = RangeMean(features).inside(spans), RowMaximum(features).inside(spans)
    for row in range(2):
        for slot, (start, end) in enumerate(spans[row].tolist()):
            own = features[row, start:end]
            torch.testing.assert_close(means[row, slot], own.mean(dim=0))
            assert torch.equal(maxima[row, slot], own.amax(dim=0))


def test_the_maximum_of_an_empty_span_is_the_word_at_its_position() -> None:
    features = torch.randn(2, 9, 4, generator=generator("features"))
    places = torch.tensor([[0, 3, 8], [0, 5, 8]])
    maxima = RowMaximum(features).inside(torch.stack([places, places], dim=-1))
    for row in range(2):
        assert torch.equal(maxima[row], features[row, places[row]])


def test_the_gradient_of_a_maximum_goes_to_the_largest_word() -> None:
    features = torch.randn(2, 9, 4, generator=generator("features"))
    spans = torch.tensor([[[0, 9], [3, 4], [2, 7], [2, 5]], [[8, 9], [0, 1], [4, 9], [1, 4]]])
    weights = torch.randn(2, 4, 4, generator=generator("weights"))
    quick, by_hand = features.clone().requires_grad_(), features.clone().requires_grad_()
    (weights * RowMaximum(quick).inside(spans)).sum().backward()
    for row in range(2):
        for slot, (start, end) in enumerate(spans[row].tolist()):
            own = weights[row, slot] * by_hand[row, start:end].amax(dim=0)
            own.sum().backward()
    torch.testing.assert_close(quick.grad, by_hand.grad)


def test_equal_words_share_one_gradient() -> None:
    features = torch.ones(1, 6, 4, requires_grad=True)
    RowMaximum(features).inside(torch.tensor([[[0, 5]]])).sum().backward()
    assert features.grad is not None
    assert torch.equal(features.grad[0].sum(dim=0), torch.ones(4))
    assert torch.equal(features.grad[0, 5], torch.zeros(4))
