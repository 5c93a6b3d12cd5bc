"""Flat decoding: overlaps are resolved by score, and tuning keeps the setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.inference.candidates import Candidates, LinkProbs
from spandet.inference.decoding import DecodingSettings, decode, without_shared_words
from spandet.inference.linking import LINK_THRESHOLD, DecodedEntity, assemble
from spandet.inference.long_sentences import LongSentences
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.tuning import _variants, tune
from spandet.text import CharSpan, Document, Entity, WordSpan

SEEDS = st.integers(0, 2**32)
FLAT = {"flat": True, "threshold": 0.0, "min_odds": 0.0}
Scored = tuple[float, tuple[tuple[int, int], ...]]
"""Score and fragments of an entity."""


def shares_words(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    return any(max(a, c) < min(b, d) for a, b in one for c, d in other)


def flattened(items: Sequence[Scored]) -> set[Scored]:
    """Plain loop: highest score first; of equal scores the earlier start, then the longer one."""
    kept: list[Scored] = []
    for score, spans in sorted(items, key=lambda i: (-i[0], i[1][0][0], -i[1][-1][1])):
        if not any(shares_words(spans, other) for _, other in kept):
            kept.append((score, spans))
    return set(kept)


def candidates(seed: int, *, sentences: int = 2, count: int = 9) -> Candidates:
    """Random candidates with many overlaps and equal scores; only fragments apart are linked."""
    rng = np.random.default_rng(seed)
    shape = (sentences, count)
    starts = rng.integers(0, 9, shape)
    ends = starts + rng.integers(1, 5, shape)
    score = (rng.integers(1, 9, shape) / 10).astype(np.float32)
    probs = np.stack([1 - score, score], axis=-1)
    together = np.triu(rng.random((*shape, count), dtype=np.float32), 1)
    gap = ends[:, :, None] < starts[:, None]
    links = LinkProbs(
        (together + together.swapaxes(1, 2)) * (gap | gap.swapaxes(1, 2)),
        rng.random(shape, dtype=np.float32),
    )
    return Candidates(np.stack([starts, ends], axis=-1), probs, rng.random(shape) > 0.1, links)


def by_sentence(wholes: Sequence[DecodedEntity]) -> dict[int, list[Scored]]:
    found: dict[int, list[Scored]] = {}
    for whole in wholes:
        found.setdefault(whole.sentence, []).append((whole.score, whole.spans))
    return found


@given(SEEDS, st.sampled_from(["keep", "greedy", "both"]), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=60)
def test_flat_equals_the_greedy_rule_with_any_other_settings(
    seed: int, crossing: str, decay: float
) -> None:
    predictions = candidates(seed)
    for links in (None, predictions.links):
        given_ = replace(predictions, links=links)
        changes = {"crossing": crossing, "nms_decay": decay, "nms_overlap": 0.3}
        flat = DecodingSettings.build({**FLAT, **changes}, where="decoding")
        everything = by_sentence(assemble(given_, flat.keeping_overlaps))
        got = by_sentence(assemble(given_, flat))
        assert {s: set(items) for s, items in got.items()} == {
            s: flattened(items) for s, items in everything.items()
        }
        for threshold in (0.35, 0.55):  # a threshold only removes entities
            higher = assemble(given_, flat.model_copy(update={"threshold": threshold}))
            accepted = [w for w in assemble(given_, flat) if w.score > threshold]
            assert higher == accepted


@given(SEEDS)
@settings(max_examples=60)
def test_flat_keeps_the_best_and_drops_only_what_overlaps_a_better_one(
    seed: int,
) -> None:
    predictions = candidates(seed)
    found = decode(predictions, DecodingSettings.build(FLAT, where="decoding"))
    for sentence in range(2):
        own = found.where(found.sentence == sentence)
        kept = [
            (score, tuple(span)) for score, span in zip(own.scores, own.spans.tolist(), strict=True)
        ]
        real = predictions.mask[sentence]
        rest = [
            (score, tuple(span))
            for score, span in zip(
                predictions.label_probs[sentence, real, 1],
                predictions.spans[sentence, real].tolist(),
                strict=True,
            )
        ]
        for score, span in rest:
            better = [k for k in kept if k[0] >= score and shares_words([k[1]], [span])]
            assert better
        taken = [word for _, (start, end) in kept for word in range(start, end)]
        assert len(taken) == len(set(taken))
        if rest:
            assert max(kept)[0] == max(rest)[0]


THREE = ((0, 3, 0.95), (0, 5, 0.92), (4, 8, 0.90))


@pytest.mark.parametrize(
    "rule",
    [{"flat": True}, {"nms_decay": 0.0, "nms_overlap": 0.01}, {"nms_decay": 0.4}],
    ids=["flat", "hard", "soft"],
)
def test_a_suppressed_candidate_suppresses_no_other(rule: dict[str, Any]) -> None:
    probs = np.array([[[1 - score, score] for *_, score in THREE]], dtype=np.float32)
    spans = np.array([[[start, end] for start, end, _ in THREE]])
    predictions = Candidates(spans, probs, np.ones((1, 3), dtype=bool))
    found = decode(predictions, DecodingSettings.build(rule, where="decoding"))
    assert found.spans.tolist() == [[0, 3], [4, 8]]


def plain_soft_nms(items: list[Scored], decay: float, overlap: float) -> set[Scored]:
    """Soft-NMS among candidates that must not cross, one at a time."""
    left = dict.fromkeys(spans for _, spans in items)
    kept: list[tuple[tuple[int, int], ...]] = []
    scores = {spans: score for score, spans in items}
    while left:
        best = max(left, key=lambda spans: (scores[spans], -spans[0][0], spans[0][1]))
        del left[best]
        ((a, b),) = best
        if any(WordSpan(a, b).crosses(WordSpan(c, d)) for ((c, d),) in kept):
            continue
        kept.append(best)
        for other in left:
            ((c, d),) = other
            shared = max(0, min(b, d) - max(a, c))
            if shared / (b - a + d - c - shared) >= overlap:
                scores[other] *= decay
    return {(round(scores[spans], 5), spans) for spans in kept}


@given(SEEDS, st.sampled_from([0.5, 0.9]), st.sampled_from([0.2, 0.5]))
@settings(max_examples=60)
def test_crossings_and_soft_nms_are_resolved_in_one_pass(
    seed: int, decay: float, overlap: float
) -> None:
    predictions = candidates(seed, sentences=1)
    changes = {"nms_decay": decay, "nms_overlap": overlap}
    both = DecodingSettings.build({**FLAT, "flat": False, **changes}, where="decoding")
    plain = replace(predictions, links=None)
    everything = by_sentence(assemble(plain, both.keeping_overlaps)).get(0, [])
    got = by_sentence(assemble(plain, both)).get(0, [])
    wanted = plain_soft_nms(everything, decay, overlap)
    assert {(round(score, 5), spans) for score, spans in got} == wanted


def test_of_equal_scores_the_earlier_then_the_longer_is_kept() -> None:
    items: list[Scored] = [(0.5, ((2, 5),)), (0.5, ((1, 3),)), (0.5, ((1, 4),)), (0.5, ((8, 9),))]
    kept = without_shared_words(items, spans=lambda item: item[1], score=lambda item: item[0])
    assert kept == [(0.5, ((1, 4),)), (0.5, ((8, 9),))]


def test_entities_in_gaps_are_kept_and_unlinked_fragments_block_nothing() -> None:
    spans = np.array([[[0, 1], [4, 5], [2, 3], [0, 5]]])
    score = np.array([0.9, 0.9, 0.6, 0.7], dtype=np.float32)
    together = np.zeros((1, 4, 4), dtype=np.float32)
    together[0, 0, 1] = together[0, 1, 0] = 0.95
    alone = np.array([[0.0, 0.0, 1.0, 1.0]], dtype=np.float32)
    predictions = Candidates(
        spans,
        np.stack([1 - score, score], axis=-1)[None],
        np.ones((1, 4), dtype=bool),
        links=LinkProbs(together, alone),
    )
    found = assemble(predictions, DecodingSettings(flat=True))
    assert [whole.spans for whole in found] == [((0, 1), (4, 5)), ((2, 3),)]
    unlinked = replace(predictions, links=LinkProbs(together * LINK_THRESHOLD, alone))
    found = assemble(unlinked, DecodingSettings(flat=True))
    assert [whole.spans for whole in found] == [((0, 5),)]


TEXT = " ".join(f"w{number % 7}" for number in range(37))
MODEL = {
    "encoder": {"hashed": {"dim": 8, "rows": 32}},
    "detector": {"name": "locate-and-label", "lengths": [1, 2, 3, 4], "filter_threshold": 0.0},
    "decoding": {"threshold": 0.26, "min_odds": 0.0},
}


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    """An untrained recognizer that predicts an entity on nearly every span."""
    torch.manual_seed(1)
    entities = (Entity(CharSpan(0, 2), "a"), Entity(CharSpan(3, 5), "b"))
    made = Recognizer.build(ModelSettings.resolve(MODEL), [Document(TEXT, entities)])
    with torch.no_grad():
        made.detector.classifier.out.weight.normal_()  # type: ignore[union-attr, operator]
    return made


def extents(document: Document) -> list[Scored]:
    return [(e.score or 0.0, ((e.span.start, e.span.end),)) for e in document.entities]


@pytest.mark.parametrize("words", [400, 12])
def test_flat_over_whole_sentences_and_over_windows(recognizer: Recognizer, words: int) -> None:
    recognizer.long_sentences = LongSentences(words=words, overlap=5)
    recognizer.decoding = recognizer.settings.decoding
    nested = recognizer(TEXT, flat=False)
    flat = recognizer(TEXT, flat=True)
    recognizer.decoding = recognizer.decoding.keeping_overlaps
    assert set(extents(flat)) == flattened(extents(recognizer(TEXT)))
    assert extents(flat) != extents(nested)
    recognizer.decoding = recognizer.settings.decoding.model_copy(update={"flat": True})
    assert recognizer(TEXT) == flat


def test_a_short_sentence_is_the_same_beside_a_long_one(recognizer: Recognizer) -> None:
    recognizer.long_sentences = LongSentences(words=12, overlap=5)
    recognizer.decoding = recognizer.settings.decoding
    short = " ".join(TEXT.split()[:9])
    alone, *_ = recognizer.predict([short], flat=True)
    beside, *_ = recognizer.predict([short, TEXT], flat=True)
    assert alone == beside


@pytest.mark.parametrize(
    "rule", [{"flat": True, "nms_decay": 0.5}, {"nms_decay": 0.0, "nms_overlap": 0.01}]
)
def test_tuning_with_flat(rule: dict[str, Any]) -> None:
    settings_ = DecodingSettings.build(rule, where="decoding")
    for variant in _variants(settings_):
        assert rule.items() <= variant.model_dump().items()
    soft = list(_variants(DecodingSettings(nms_decay=0.5)))
    assert {variant.nms_decay for variant in soft} == {0.5, 0.7, 0.8, 0.9, 1.0}


def test_a_model_tuned_with_flat_predicts_flat(recognizer: Recognizer) -> None:
    recognizer.long_sentences = LongSentences(words=12, overlap=5)
    recognizer.decoding = recognizer.settings.decoding.model_copy(update={"flat": True})
    tuned = tune(recognizer, [Document(TEXT, (Entity(CharSpan(9, 14), "a"),))])
    assert tuned.flat
