"""Laws of ensembles: the mean equals counting, and what one member alone means."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.inference.candidates import Candidates, LinkProbs
from spandet.inference.decoding import DecodedSpans, DecodingSettings, decode, merge_duplicates
from spandet.inference.ensemble_mean import Vote, mean_candidates

Key = tuple[int, int, int, int]
"""Sentence, start, end, label."""
SEEDS = st.integers(0, 2**32)
LABELS = 3
MERGES = ["max", "sum", "first", "first-votes", "noisy-or"]


def candidates(rng: np.random.Generator, *, sentences: int, labels: int) -> Candidates:
    """Candidates with many duplicates, and some padding."""
    shape = (sentences, int(rng.integers(0, 8)))
    starts = rng.integers(0, 4, shape)
    spans = np.stack([starts, starts + rng.integers(1, 3, shape)], axis=-1)
    probs = rng.dirichlet(np.ones(1 + labels), shape).astype(np.float32)
    return Candidates(spans, probs.reshape(*shape, 1 + labels), rng.random(shape) > 0.2)


def votes(seed: int, members: int, *, one_label: bool) -> list[Vote]:
    """Members that know all labels or the first two, in any order, and merge in any way."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, members)
    found = []
    for weight in weights:
        known = int(rng.integers(2, 1 + LABELS))
        ids = np.array([0, *(1 + rng.permutation(LABELS)[:known])])
        changes = {"merge": MERGES[rng.integers(len(MERGES))], "min_odds": float(rng.random())}
        decoding = DecodingSettings.build({**changes, "one_label": one_label}, where="decoding")
        own = candidates(rng, sentences=2, labels=known)
        found.append(Vote(own, decoding, ids, float(weight / weights.sum())))
    return found


def counted(members: list[Vote], *, one_label: bool) -> dict[Key, float]:
    """The rule, spelt out."""
    total: dict[Key, float] = {}
    for vote in members:
        found = merge_duplicates(vote.candidates, vote.decoding)
        for number in range(len(found.sentence)):
            sentence, origin = int(found.sentence[number]), int(found.origin[number])
            start, end = found.spans[number].tolist()
            for label in range(1, len(vote.label_ids)):
                score = float(vote.candidates.label_probs[sentence, origin, label])
                if label == found.labels[number]:
                    score = min(1.0, float(found.scores[number]))
                elif not one_label:
                    continue
                key = (sentence, start, end, int(vote.label_ids[label]))
                total[key] = total.get(key, 0.0) + vote.share * score
    return total


@given(SEEDS, st.integers(1, 4), st.booleans())
@settings(max_examples=150)
def test_the_mean_equals_counting(seed: int, members: int, one_label: bool) -> None:
    given_ = votes(seed, members, one_label=one_label)
    got = mean_candidates(given_, 2, labels=LABELS, one_label=one_label)
    assert not got.label_probs[..., 0].any()
    scores: dict[Key, float] = {}
    places = []
    for sentence, origin in np.argwhere(got.mask).tolist():
        start, end = got.spans[sentence, origin].tolist()
        probs = got.label_probs[sentence, origin]
        places.append((sentence, start, end, *([] if one_label else [int(probs.argmax())])))
        for label in np.flatnonzero(probs).tolist():
            assert (sentence, start, end, label) not in scores
            scores[sentence, start, end, label] = float(probs[label])
    assert len(places) == len(set(places))
    assert scores == pytest.approx(counted(given_, one_label=one_label), abs=1e-6)


def rows(found: DecodedSpans) -> list[tuple[object, ...]]:
    """The decoded spans; those on the same words by label, whose order has no meaning."""
    return sorted(
        (sentence, start, -end, label, score)
        for sentence, (start, end), label, score in zip(
            found.sentence.tolist(),
            found.spans.tolist(),
            found.labels.tolist(),
            found.scores.tolist(),
            strict=True,
        )
    )


@given(SEEDS, st.sampled_from(["keep", "greedy", "both"]), st.booleans(), st.booleans())
@settings(max_examples=150)
def test_one_member_alone_is_decoded_as_before(
    seed: int, crossing: str, one_label: bool, flat: bool
) -> None:
    rng = np.random.default_rng(seed)
    own = candidates(rng, sentences=3, labels=LABELS)
    shared = {"crossing": crossing, "one_label": one_label, "flat": flat, "threshold": 0.2}
    before = {"merge": "max" if seed % 2 else "noisy-or", "min_odds": 0.4}
    decoding = DecodingSettings.build({**shared, **before}, where="decoding")
    vote = Vote(own, decoding, np.arange(1 + LABELS), 1.0)
    mean = mean_candidates([vote], 3, labels=LABELS, one_label=one_label)
    after = DecodingSettings.build({**shared, "min_odds": 0.0}, where="decoding")
    assert rows(decode(mean, after)) == rows(decode(own, decoding))


@given(SEEDS)
@settings(max_examples=60)
def test_a_mean_of_equal_members_is_the_member(seed: int) -> None:
    (vote,) = votes(seed, 1, one_label=True)
    alone = mean_candidates([vote], 2, labels=LABELS, one_label=True)
    half = Vote(vote.candidates, vote.decoding, vote.label_ids, 0.5)
    twice = mean_candidates([half, half], 2, labels=LABELS, one_label=True)
    np.testing.assert_array_equal(twice.spans, alone.spans)
    np.testing.assert_array_equal(twice.label_probs, alone.label_probs)


@given(SEEDS)
@settings(max_examples=60)
def test_the_order_of_members_changes_rounding_at_most(seed: int) -> None:
    given_ = votes(seed, 3, one_label=True)
    first, *others = (
        mean_candidates(order, 2, labels=LABELS, one_label=True) for order in permutations(given_)
    )
    for other in others:
        np.testing.assert_array_equal(other.spans, first.spans)
        np.testing.assert_allclose(other.label_probs, first.label_probs, rtol=1e-6)


def with_links(rng: np.random.Generator, own: Candidates) -> Candidates:
    count = own.mask.shape[1]
    probs = np.triu(rng.random((len(own.mask), count, count), dtype=np.float32), 1)
    symmetric = probs + probs.swapaxes(1, 2)
    return replace(own, links=LinkProbs(symmetric, rng.random(own.mask.shape, dtype=np.float32)))


@given(SEEDS, st.integers(1, 3))
@settings(max_examples=80)
def test_the_mean_of_links_is_over_the_members_that_propose_both_fragments(
    seed: int, members: int
) -> None:
    rng = np.random.default_rng(seed)
    given_ = [
        replace(vote, candidates=with_links(rng, vote.candidates))
        for vote in votes(seed, members, one_label=True)
    ]
    got = mean_candidates(given_, 2, labels=LABELS, one_label=True)
    assert got.links is not None
    rule: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for vote in given_:
        found, links = merge_duplicates(vote.candidates, vote.decoding), vote.candidates.links
        assert links is not None
        places = list(
            zip(found.sentence, map(tuple, found.spans.tolist()), found.origin, strict=True)
        )
        for sentence, span, origin in places:
            value = float(links.alone[sentence, origin])
            rule.setdefault((sentence, span), []).append((vote.share, value))
            for same, other, second in places:
                if same == sentence:
                    value = float(links.together[sentence, origin, second])
                    rule.setdefault((sentence, span, other), []).append((vote.share, value))
    spans = [[tuple(span) for span in row] for row in got.spans.tolist()]
    for sentence, one in np.argwhere(got.mask).tolist():
        key = (sentence, spans[sentence][one])
        assert got.links.alone[sentence, one] == pytest.approx(weighted(rule[key]))
        for second in np.flatnonzero(got.mask[sentence]).tolist():
            pairs = rule.get((*key, spans[sentence][second]), [])
            assert got.links.together[sentence, one, second] == pytest.approx(weighted(pairs))


def weighted(values: list[tuple[float, float]]) -> float:
    """The weighted mean; 0 without values."""
    return sum(w * v for w, v in values) / sum(w for w, _ in values) if values else 0.0
