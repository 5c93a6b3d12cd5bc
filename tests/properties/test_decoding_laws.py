"""Decoding and suppression against plain loops over candidates, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from papers import locate_and_label_paper as paper
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodedSpans, DecodingSettings, decode
from spandet.inference.suppression import (
    crosses,
    iou,
    overlaps,
    soft_nms,
    uncrossed,
    without_crossing,
    without_overlap,
)
from spandet.inference.tuning import best_threshold

LAW = settings(max_examples=150)
Span = tuple[int, int]
ZERO = np.float32(0)


def words(span: Span) -> set[int]:
    return set(range(*span))


def cross(a: Span, b: Span) -> bool:
    p, q = words(a), words(b)
    return bool(p & q and p - q and q - p)


def shares(a: Span, b: Span) -> bool:
    return bool(words(a) & words(b))


@dataclass(frozen=True, eq=False)
class One:
    """A candidate during decoding; probabilities are float32."""

    sentence: int
    origin: int
    span: Span
    probs: np.ndarray
    type_prob: np.float32
    label: int = 0
    score: np.float32 = ZERO

    def key(self, *, by_label: bool) -> tuple[object, ...]:
        return (self.sentence, self.span, self.label if by_label else None)


def best_first(items: Sequence[One], conflict: Callable[[Span, Span], bool]) -> list[One]:
    kept: list[One] = []
    for item in sorted(items, key=lambda one: -one.score):
        if not any(conflict(item.span, other.span) for other in kept):
            kept.append(item)
    return [item for item in items if item in kept]


def plain_soft_nms(items: Sequence[One], own: DecodingSettings, *, may_cross: bool) -> list[One]:
    """Scores of `items` after Soft-NMS; one that may not cross gets 0."""
    initial = [item.score for item in items]
    scores, left, kept = list(initial), list(range(len(items))), list[int]()
    while left:
        ranked = scores if own.nms_rule == "paper" else initial
        best = max(left, key=lambda i: (ranked[i], -i))
        left.remove(best)
        if not may_cross and any(cross(items[best].span, items[k].span) for k in kept):
            continue
        kept.append(best)
        for i in left:
            p, q = words(items[best].span), words(items[i].span)
            share = np.float32(len(p & q)) / np.float32(len(p | q))
            enough = np.float32(own.nms_overlap)
            if share >= enough if own.nms_rule == "paper" else share > enough:
                scores[i] = scores[i] * np.float32(own.nms_decay)
    return [
        replace(item, score=scores[i] if may_cross or i in kept else ZERO)
        for i, item in enumerate(items)
    ]


def plain_merge(items: Sequence[One], own: DecodingSettings) -> list[One]:
    merged = []
    for item in items:
        agree = [one.score for one in items if one.key(by_label=True) == item.key(by_label=True)]
        score = item.score
        if own.merge == "sum":
            score = sum(agree, ZERO)
        elif own.merge == "first-votes":
            score = score * np.float32(len(agree))
        merged.append(replace(item, score=score))
    by_origin = own.merge.startswith("first")
    ranked = sorted(merged, key=lambda one: one.origin if by_origin else -one.score)
    first: dict[tuple[object, ...], One] = {}
    for item in ranked:
        first.setdefault(item.key(by_label=not own.one_label), item)
    return [item for item in merged if any(item is one for one in first.values())]


def plain_suppression(items: Sequence[One], own: DecodingSettings) -> Iterator[One]:
    threshold, one = np.float32(own.threshold), np.float32(1)
    for _, group in groupby(items, key=lambda item: item.sentence):
        row = list(group)
        if own.flat or own.crossing != "both":
            row = [item for item in row if item.score > threshold]
        if own.flat:
            row = best_first([replace(i, score=min(i.score, one)) for i in row], shares)
        elif own.crossing == "greedy" and own.nms_decay == 1:
            row = best_first(row, cross)
        else:
            if own.crossing == "both":
                row = [i for i in row if not any(cross(i.span, other.span) for other in row)]
            row = plain_soft_nms(row, own, may_cross=own.crossing != "greedy")
        yield from (replace(item, score=min(item.score, one)) for item in row)


def plain_decode(items: Sequence[One], own: DecodingSettings) -> list[One]:
    row = []
    for item in items:
        label = max(range(1, len(item.probs)), key=lambda k: (item.probs[k], -k))
        if item.probs[label] > np.float32(own.min_odds) * item.probs[0]:
            row.append(replace(item, label=label, score=item.probs[label]))
    row.sort(key=lambda one: (one.sentence, one.span[0], -one.span[1]))
    if own.merge_by == "label":
        ranked = [replace(item, score=item.type_prob) for item in row]
        chosen = plain_merge(ranked, own.model_copy(update={"merge": "max"}))
        places = {(item.sentence, item.origin) for item in chosen}
        row = [item for item in row if (item.sentence, item.origin) in places]
    if own.merge != "after":
        row = plain_merge(row, own)
    row = list(plain_suppression(row, own))
    if own.merge == "after":
        row = plain_merge(row, own)
    return [item for item in row if item.score > np.float32(own.threshold)]


@st.composite
def sentences(draw: st.DrawFn) -> list[list[Span]]:
    starts = st.integers(0, 7)
    pair = starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(s + 1, min(8, s + 5))))
    return draw(st.lists(st.lists(pair, max_size=9), min_size=1, max_size=3))


SEEDS = st.integers(0, 2**31)
OPTIONS = st.builds(
    DecodingSettings,
    threshold=st.sampled_from([0.0, 0.3, 0.6]),
    min_odds=st.sampled_from([0.0, 0.7, 1.0]),
    nms_decay=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    nms_overlap=st.sampled_from([0.01, 0.5, 0.6]),
    nms_rule=st.sampled_from(["paper", "released-code"]),
    merge=st.sampled_from(["max", "sum", "first", "first-votes", "after"]),
    merge_by=st.sampled_from(["score", "label"]),
    one_label=st.booleans(),
    crossing=st.sampled_from(["keep", "greedy", "both"]),
    flat=st.booleans(),
)


def padded(rows: Sequence[Sequence[Span]]) -> tuple[np.ndarray, np.ndarray]:
    """Spans and mask; padding is a span that overlaps others."""
    most = max(len(row) for row in rows)
    spans = [[*row, *[(2, 5)] * (most - len(row))] for row in rows]
    mask = np.arange(most) < np.array([[len(row)] for row in rows])
    return np.array(spans, dtype=np.int64).reshape(len(rows), most, 2), mask


def random_scores(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Scores between 0 and 1, with ties in every second call."""
    scores = np.random.default_rng(seed).random(shape, dtype=np.float32)
    return np.round(scores * 8) / np.float32(8) if seed % 2 else scores


def shown(found: DecodedSpans) -> list[tuple[object, ...]]:
    columns = (found.sentence, found.spans, found.labels, found.scores, found.origin)
    return [
        (sentence, tuple(span), label, score, origin)
        for sentence, span, label, score, origin in zip(*(c.tolist() for c in columns), strict=True)
    ]


@given(sentences(), SEEDS, OPTIONS)
@LAW
def test_decoding_equals_plain_loops(
    rows: list[list[Span]], seed: int, own: DecodingSettings
) -> None:
    spans, mask = padded(rows)
    probs = random_scores((*mask.shape, 3), seed)
    types = random_scores(mask.shape, seed + 2)
    found = decode(Candidates(spans, probs, mask, type_probs=types), own)
    items = [
        One(b, i, span, probs[b, i], types[b, i])
        for b, row in enumerate(rows)
        for i, span in enumerate(row)
    ]
    wanted = [
        (one.sentence, one.span, one.label, float(one.score), one.origin)
        for one in plain_decode(items, own)
    ]
    assert shown(found) == wanted
    assert found.scores.dtype == np.float32


@given(sentences(), SEEDS, st.sampled_from([0.5, 0.8]))
@LAW
def test_suppression_equals_a_loop_over_candidates(
    rows: list[list[Span]], seed: int, decay: float
) -> None:
    spans, mask = padded(rows)
    scores = random_scores(
        mask.shape, 2 * seed
    )  # the paper does not define the order of equal scores
    nms = soft_nms(spans, scores, mask, decay=decay, overlap=0.5)
    greedy, flat = without_crossing(spans, scores, mask), without_overlap(spans, scores, mask)
    neither = uncrossed(spans, mask)
    for b, row in enumerate(rows):
        proposals = [(s, e - 1, i + 1, scores[b, i].item()) for i, (s, e) in enumerate(row)]
        final = paper.soft_nms(proposals, replace(paper.Settings(), u=decay, k=0.5, delta=-1))
        assert len(final) == len(row)
        assert all(abs(nms[b, i - 1].item() - score) < 1e-6 for *_, i, score in final)
        order = np.argsort(-scores[b, : len(row)], kind="stable").tolist()
        for got, conflict in ((greedy, cross), (flat, shares)):
            kept: list[int] = []
            for i in order:
                if not any(conflict(row[i], row[j]) for j in kept):
                    kept.append(i)
            assert np.flatnonzero(got[b]).tolist() == sorted(kept)
        alone = [i for i in range(len(row)) if not any(cross(row[i], other) for other in row)]
        assert np.flatnonzero(neither[b]).tolist() == alone
    assert np.array_equal(without_crossing(spans, scores, greedy), greedy)  # idempotent
    assert np.array_equal(without_overlap(spans, scores, flat), flat)


@given(sentences())
@LAW
def test_overlaps_agree_with_counting_words(rows: list[list[Span]]) -> None:
    row = [span for row in rows for span in row]
    spans = np.array(row, dtype=np.int64).reshape(-1, 2)
    left, right = spans[:, None], spans[None]
    for i, a in enumerate(row):
        for j, b in enumerate(row):
            shared, either = words(a) & words(b), words(a) | words(b)
            assert iou(left, right)[i, j] == np.float32(len(shared) / len(either))
            assert crosses(left, right)[i, j] == cross(a, b)
            assert overlaps(left, right)[i, j] == bool(shared)


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=30), st.integers(0, 20))
@LAW
def test_the_best_threshold_is_that_of_a_plain_loop(
    rows: list[tuple[int, bool]], missed: int
) -> None:
    scored = [(number / 12, correct) for number, correct in rows]
    gold = missed + sum(correct for _, correct in scored)
    ranked = sorted({score for score, _ in scored if score}, reverse=True)
    best, best_f1 = 0.5, 0.0
    for score, below in pairwise([*ranked, 0.0]):
        kept = [correct for own, correct in scored if own >= score]
        f1 = 2 * sum(kept) / (len(kept) + gold)
        if f1 > best_f1:
            best, best_f1 = (score + below) / 2, f1
    assert best_threshold(iter(scored), gold) == (best, best_f1)
