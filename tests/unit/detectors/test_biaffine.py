"""Biaffine: the band equals brute force; a sentence alone is the same as in a batch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spandet.detectors.biaffine import Biaffine
from spandet.detectors.biaffine_settings import BiaffineSettings
from spandet.tensors import SpanPredictions, WordFeatures
from support.sentence_toys import Item, gold_spans, word_features

DIM, LABELS = 8, 4


def detector(**settings: Any) -> Biaffine:
    torch.manual_seed(0)
    values = BiaffineSettings.build({"dim": 6, **settings}, where="detector")
    made = Biaffine(values, dim=DIM, sentence_dim=0, labels=LABELS)
    with torch.no_grad():
        for parameter in made.parameters():  # large weights, so that some scores are high
            parameter.normal_(std=0.5)
    return made.eval()


def words(*lengths: int, width: int = 0) -> WordFeatures:
    return word_features(*lengths, dim=DIM, width=width, litter=True)


def by_span(found: SpanPredictions, sentence: int) -> dict[tuple[int, ...], Tensor]:
    rows = zip(found.spans[sentence], found.label_probs[sentence], strict=True)
    return {tuple(span.tolist()): probs for span, probs in rows if span[0] < span[1]}


def brute_force(made: Biaffine, sentence: WordFeatures) -> dict[tuple[int, ...], Tensor]:
    """Every span by itself: one bilinear form of [first; 1] and [last; 1] per label."""
    own = sentence.features[0][sentence.mask[0]]
    size = made.settings.dim
    joined = torch.cat([made.weights.weight, made.weights.bias[:, None]], dim=1)
    forms = joined.view(LABELS, size + 1, size + 1)  # label last first
    one = torch.ones(1)
    scored: dict[tuple[int, ...], Tensor] = {}
    for start in range(len(own)):
        widest = made.settings.max_width or len(own)
        for end in range(start + 1, min(start + widest, len(own)) + 1):
            first = torch.cat([made.first(own[start]), one])
            last = torch.cat([made.last(own[end - 1]), one])
            scored[start, end] = torch.stack([last @ form @ first for form in forms]).softmax(0)
    return scored


@pytest.mark.parametrize("max_width", [0, 1, 3, 7, 50])
@pytest.mark.parametrize("activation", ["gelu", "none"])
def test_the_band_equals_brute_force(max_width: int, activation: str) -> None:
    made = detector(max_width=max_width, activation=activation)
    for length in (1, 2, 7):
        sentence = words(length, width=9)
        got = by_span(made.detect(sentence, [], keep_all=True), 0)
        wanted = brute_force(made, sentence)
        assert set(got) == set(wanted)
        for span, probs in wanted.items():
            torch.testing.assert_close(got[span], probs)


@pytest.mark.parametrize("settings", [{}, {"max_width": 3}, {"max_width": 0, "smoothing": 0.2}])
def test_a_sentence_alone_is_the_same_as_in_a_padded_batch(settings: dict[str, Any]) -> None:
    made, lengths = detector(**settings), (5, 1, 14, 0)
    items: list[list[Item]] = [[(0, 2, 1), (1, 2, 2)], [], [(0, 12, 3), (13, 14, 1)], []]
    together = made.detect(words(*lengths, width=17), [])
    losses = []
    for index, length in enumerate(lengths):
        alone = made.detect(words(length), [])
        one, other = by_span(alone, 0), by_span(together, index)
        assert set(one) == set(other)
        for span, probs in one.items():
            torch.testing.assert_close(probs, other[span])
        losses.append(made(words(length), gold_spans(items[index]), [])["label"])
    batch = made(words(*lengths, width=17), gold_spans(*items), [])["label"]
    torch.testing.assert_close(batch.total, torch.stack([loss.total for loss in losses]).sum())
    assert batch.count == sum(loss.count for loss in losses)


def test_only_spans_with_a_probable_label_are_candidates() -> None:
    sentence = words(9)
    whole = detector().detect(sentence, [], keep_all=True)
    assert whole.mask.shape[1] == 45
    for min_odds in (0.0, 0.1, 1.0):
        made = detector(min_odds=min_odds)
        kept = by_span(made.detect(sentence, []), 0)
        wanted = {s: p for s, p in by_span(whole, 0).items() if p[1:].max() > min_odds * p[0]}
        assert set(kept) == set(wanted)
        assert made.detect(sentence, [], keep_all=True).mask.sum() == len(wanted)
    assert 0 < len(wanted) < 45


def test_without_gold_all_spans_are_none_and_without_words_there_is_no_loss() -> None:
    made = detector()
    loss = made(words(6, 1), gold_spans([], []), [])["label"]
    probs = [
        probs
        for sentence in (0, 1)
        for probs in by_span(made.detect(words(6, 1), [], keep_all=True), sentence).values()
    ]
    assert len(probs) == 21 + 1
    assert loss.count == 6 + 1
    torch.testing.assert_close(loss.total, -torch.stack(probs)[:, 0].log().sum())
    nothing = made(words(0, 0), gold_spans([], []), [])["label"]
    assert (nothing.total, nothing.count) == (0, 0)


def test_an_entity_wider_than_the_band_has_no_target() -> None:
    made = detector(max_width=3)
    with_it, without = (made(words(8), gold_spans(items), []) for items in ([(0, 5, 1)], []))
    assert with_it["label"] == without["label"]


def test_there_is_one_stage_to_trace() -> None:
    found = detector().detect(words(4, 2), [])
    (stage,) = found.trace
    assert torch.equal(stage.spans, found.spans.to(stage.spans.dtype))
    assert stage.label_probs is found.label_probs
