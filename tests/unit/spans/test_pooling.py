"""Vectors of spans against pooling by hand."""

import torch

from spandet.chance import generator
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


def test_an_empty_span_is_the_word_at_its_place_to_a_maximum() -> None:
    features = torch.randn(2, 9, 4, generator=generator("features"))
    places = torch.tensor([[0, 3, 8], [0, 5, 8]])
    maxima = RowMaximum(features).inside(torch.stack([places, places], dim=-1))
    for row in range(2):
        assert torch.equal(maxima[row], features[row, places[row]])
