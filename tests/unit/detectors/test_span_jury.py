"""Span jury: laws of `forward` and `detect`."""

from typing import Any

import pytest
import torch
from torch import Tensor

from spandet.detectors.span_jury import SpanJury
from spandet.detectors.span_jury_settings import SpanJurySettings
from spandet.tensors import SpanPredictions, WordFeatures
from support.sentence_toys import Item, gold_spans, word_features

DIM, LABELS = 8, 4
LENGTHS = (5, 1, 14, 0)
GOLD: list[list[Item]] = [[(0, 2, 1), (1, 2, 2)], [], [(0, 12, 3), (13, 14, 1)], []]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"rounds": 0},
    {"rounds": 3, "attention": "spatial", "auxiliary": False},
    {"use_category_embedding": False, "attention": "dot", "none_weight": 0.3},
    {"nominees_per_word": 3.0, "nominees_extra": 0, "smoothing": 0.2},
]


def detector(**settings: Any) -> SpanJury:
    torch.manual_seed(0)
    values = SpanJurySettings.build({"dim": 8, "heads": 2, **settings}, where="detector")
    made = SpanJury(values, dim=DIM, sentence_dim=0, labels=LABELS)
    with torch.no_grad():
        for parameter in made.parameters():  # large weights, so that some scores are high
            parameter.normal_(std=0.5)
    return made.eval()


def words(*lengths: int, width: int = 0) -> WordFeatures:
    return word_features(*lengths, dim=DIM, width=width, litter=True)


def by_span(found: SpanPredictions, sentence: int) -> dict[tuple[int, ...], Tensor]:
    chosen = found.mask[sentence]
    rows = zip(found.spans[sentence][chosen], found.label_probs[sentence][chosen], strict=True)
    return {tuple(span.tolist()): probs for span, probs in rows}


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_sentence_alone_is_the_same_as_in_a_padded_batch(settings: dict[str, Any]) -> None:
    made = detector(**settings)
    together = made.detect(words(*LENGTHS, width=17), [])
    alone_losses = []
    for index, length in enumerate(LENGTHS):
        one, other = by_span(made.detect(words(length), []), 0), by_span(together, index)
        assert set(one) == set(other)
        for span, probs in one.items():
            torch.testing.assert_close(probs, other[span])
        alone_losses.append(made(words(length), gold_spans(GOLD[index]), []))
    batch = made(words(*LENGTHS, width=17), gold_spans(*GOLD), [])
    for name, loss in batch.items():
        parts = [losses[name] for losses in alone_losses]
        torch.testing.assert_close(loss.total, torch.stack([part.total for part in parts]).sum())
        assert loss.count == sum(part.count for part in parts)


@pytest.mark.parametrize("length", [1, 2, 5, 14])
def test_nominees_are_different_spans_and_as_many_as_wanted(length: int) -> None:
    found = by_span(detector(nominees_per_word=1.0, nominees_extra=2).detect(words(length), []), 0)
    assert len(found) == min(length + 2, length * (length + 1) // 2)
    assert all(0 <= start < end <= length for start, end in found)


def test_a_nominee_is_the_likeliest_span_of_all() -> None:
    made, sentence = detector(nominees_per_word=0.0, nominees_extra=3), words(6)
    logits = made.nominate(sentence).logits[0]
    best = logits.flatten().topk(3).indices
    wanted = {(int(i) // 6, int(i) % 6 + 1) for i in best}
    assert set(by_span(made.detect(sentence, []), 0)) == wanted


def test_entities_are_always_candidates_in_training() -> None:
    """Even those with low scores have a label loss."""
    made = detector(nominees_per_word=0.0, nominees_extra=3, rounds=0)
    scores = made.nominate(words(9)).logits[0]
    least = int(scores.masked_fill(~torch.isfinite(scores), torch.inf).argmin())
    span = (least // 9, least % 9 + 1)
    losses = [made(words(9), gold_spans([(*span, label)]), [])["label"].total for label in (1, 2)]
    assert losses[0] != losses[1]


def test_nominees_depend_on_each_other_only_in_rounds() -> None:
    sentence = words(9)
    for rounds, equal in ((0, True), (1, False)):
        few = detector(nominees_per_word=0.0, nominees_extra=2, rounds=rounds)
        many = detector(nominees_per_word=0.0, nominees_extra=20, rounds=rounds)
        some, all_ = by_span(few.detect(sentence, []), 0), by_span(many.detect(sentence, []), 0)
        assert all(torch.allclose(probs, all_[span]) == equal for span, probs in some.items())


def test_the_trace_has_the_label_probabilities_of_each_round() -> None:
    found = detector(rounds=2).detect(words(4, 2), [])
    assert [stage.name for stage in found.trace] == ["nominated", "read", "round 1", "round 2"]
    assert found.trace[0].scores is not None
    assert found.trace[-1].label_probs is found.label_probs
    assert all(torch.equal(stage.spans, found.spans.float()) for stage in found.trace)


def test_prediction_may_end_after_fewer_rounds() -> None:
    whole = detector(rounds=2).detect(words(9), [])
    for rounds in (0, 1, 2, 5):
        early = detector(rounds=2, eval_rounds=rounds).detect(words(9), [])
        stages = whole.trace[: 2 + rounds]
        assert [stage.name for stage in early.trace] == [stage.name for stage in stages]
        torch.testing.assert_close(early.label_probs, stages[-1].label_probs)
