"""`keep_all` of every detector: more candidates for tracing, the same for decoding."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from spandet.detectors import DETECTORS, Detector
from spandet.inference.decoding import DecodedSpans, DecodingSettings, decode
from spandet.inference.engine import to_numpy
from spandet.seeding import generator
from spandet.tensors import SpanPredictions, WordFeatures

DIM, LABELS = 16, 4
LENGTHS = (9, 1, 5, 14)
DECODINGS = [
    DecodingSettings(),
    DecodingSettings(threshold=0, crossing="keep"),
    DecodingSettings(threshold=0.1, crossing="both", merge="first", nms_decay=0.6),
    DecodingSettings(threshold=0, crossing="keep", merge="sum", min_odds=0),
]


def detector(name: str) -> Detector:
    torch.manual_seed(3)
    row = DETECTORS[name]
    made: Detector = row.build(row.settings(), dim=DIM, sentence_dim=DIM, labels=LABELS)
    with torch.no_grad():
        for parameter in made.parameters():  # large weights, so that some scores are high
            parameter.normal_(std=0.4)
    return made.eval()


def sentences() -> WordFeatures:
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    features = torch.randn(*mask.shape, DIM, generator=generator("words")) * mask[..., None]
    return WordFeatures(features, mask, features.sum(dim=1))


def rngs() -> Sequence[Generator]:
    return [generator("rng", number) for number in LENGTHS]


def detected(made: Detector, *, keep_all: bool) -> SpanPredictions:
    with torch.inference_mode():
        return made.detect(sentences(), rngs(), keep_all=keep_all)


def shown(found: DecodedSpans) -> list[list[object]]:
    return [found.sentence.tolist(), found.spans.tolist(), found.labels.tolist()]


@pytest.mark.parametrize("name", DETECTORS)
def test_decoding_ignores_dropped_candidates(name: str) -> None:
    made = detector(name)
    usual, whole = (detected(made, keep_all=keep_all) for keep_all in (False, True))
    total = 0
    for settings in DECODINGS:
        one, other = decode(to_numpy(usual), settings), decode(to_numpy(whole), settings)
        assert shown(one) == shown(other)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1.3e-6, atol=1e-5)
        total += len(one.scores)
    assert total


@pytest.mark.parametrize("name", DETECTORS)
def test_stages_belong_to_the_same_candidates(name: str) -> None:
    made = detector(name)
    usual, whole = (detected(made, keep_all=keep_all) for keep_all in (False, True))
    assert usual.trace
    assert [stage.name for stage in usual.trace] == [stage.name for stage in whole.trace]

    def same(one: Tensor | None, other: Tensor | None) -> None:
        if one is None or other is None:
            assert one is other
        else:
            assert other.shape[:2] == whole.mask.shape
            torch.testing.assert_close(one[usual.mask], other[whole.mask])

    for one, other in zip(usual.trace, whole.trace, strict=True):
        same(one.spans, other.spans)
        same(one.scores, other.scores)
        same(one.label_probs, other.label_probs)


def test_locate_and_label_keeps_the_seeds_that_its_filter_drops() -> None:
    made = detector("locate-and-label")
    usual, whole = (detected(made, keep_all=keep_all) for keep_all in (False, True))
    seeds = sum(
        min(length, 10) * length - min(length, 10) * (min(length, 10) - 1) // 2
        for length in LENGTHS
    )
    real = whole.spans[..., 0] < whole.spans[..., 1]
    assert real.sum() == seeds
    assert 0 < usual.mask.sum() == whole.mask.sum() < seeds
    scores = whole.trace[0].scores
    assert scores is not None
    assert (scores[real & ~whole.mask] <= 1 / 6).all()
