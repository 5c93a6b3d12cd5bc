"""Geometry against brute force."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers import locate_and_label_paper as paper
from spandet.detectors.locate_and_label.seeds import draw
from spandet.spans.flat import FlatSpans, enumerate_spans
from spandet.spans.overlap import crosses, iou
from spandet.spans.pooling import RangeMaximum
from spandet.spans.suppression import soft_nms, uncrossed, without_crossing

LAW = settings(max_examples=60)


@st.composite
def some_spans(draw: st.DrawFn, words: int = 12, least: int = 0) -> list[tuple[int, int]]:
    starts = st.integers(0, words - 1)
    pair = starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(s + 1, words)))
    return draw(st.lists(pair, min_size=least, max_size=8))


@given(some_spans(least=1), some_spans(least=1))
@LAW
def test_iou_and_crossing_agree_with_counting_words(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    left, right = torch.tensor(a)[:, None], torch.tensor(b)[None]
    got, crossing = iou(left, right), crosses(left, right)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            p, q = set(range(*x)), set(range(*y))
            assert abs(got[i, j].item() - len(p & q) / len(p | q)) < 1e-6
            assert crossing[i, j].item() == bool(p & q and p - q and q - p)


@given(st.integers(1, 40), st.integers(0, 2**31), st.data())
@LAW
def test_range_maximum_equals_brute_force(words: int, seed: int, data: st.DataObject) -> None:
    features = torch.randn(2, words, 3, generator=torch.Generator().manual_seed(seed))
    chosen = data.draw(some_spans(words, least=1))
    sentence = torch.arange(len(chosen)) % 2
    pooled = RangeMaximum(features, words).inside(FlatSpans(sentence, torch.tensor(chosen)))
    for row, (b, (start, end)) in zip(pooled, zip(sentence, chosen, strict=True), strict=True):
        assert torch.equal(row, features[b, start:end].amax(dim=0))


@given(st.lists(st.integers(0, 9), max_size=4), st.sets(st.integers(1, 6), min_size=1))
@LAW
def test_seeds_are_every_clipped_window_once(counts: list[int], lengths: set[int]) -> None:
    seeds = enumerate_spans(counts, sorted(lengths))
    got = list(zip(seeds.sentence.tolist(), map(tuple, seeds.spans.tolist()), strict=True))
    wanted = {
        (b, (i, min(n, i + length)))
        for b, n in enumerate(counts)
        for i in range(n)
        for length in lengths
    }
    assert len(got) == len(set(got))
    assert set(got) == wanted
    assert [b for b, _ in got] == sorted(b for b, _ in got)


@given(st.lists(some_spans(), min_size=1, max_size=3), st.integers(0, 2**31))
@LAW
def test_suppression_follows_its_description(rows: list[list[tuple[int, int]]], seed: int) -> None:
    most = max(len(row) for row in rows)
    padded = [row + [(0, 1)] * (most - len(row)) for row in rows]
    spans = torch.tensor(padded, dtype=torch.long).reshape(len(rows), most, 2)
    mask = torch.arange(most) < torch.tensor([len(row) for row in rows])[:, None]
    scores = torch.rand(mask.shape, generator=torch.Generator().manual_seed(seed))
    nms = soft_nms(spans, scores, mask, decay=0.8, overlap=0.5)
    greedy = without_crossing(spans, scores, mask)
    neither = uncrossed(spans, mask)
    for b, row in enumerate(rows):
        proposals = [(s, e - 1, i + 1, scores[b, i].item()) for i, (s, e) in enumerate(row)]
        final = paper.soft_nms(proposals, replace(paper.Settings(), u=0.8, k=0.5, delta=-1))
        assert len(final) == len(row)
        assert all(abs(nms[b, i - 1].item() - score) < 1e-6 for *_, i, score in final)
        kept: list[int] = []
        for i in sorted(range(len(row)), key=lambda i: -scores[b, i].item()):
            if not any(_cross(row[i], row[j]) for j in kept):
                kept.append(i)
        assert greedy[b].nonzero().flatten().tolist() == sorted(kept)
        alone = [i for i in range(len(row)) if not any(_cross(row[i], other) for other in row)]
        assert neither[b].nonzero().flatten().tolist() == alone
    assert torch.equal(without_crossing(spans, scores, greedy), greedy)  # idempotent


def _cross(a: tuple[int, int], b: tuple[int, int]) -> bool:
    p, q = set(range(*a)), set(range(*b))
    return bool(p & q and p - q and q - p)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 12), st.data())
@LAW
def test_drawing_respects_quota_and_ability_and_sentence(
    counts: list[int], quota: int, data: st.DataObject
) -> None:
    sentence = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    able = torch.tensor([data.draw(st.booleans()) for _ in sentence], dtype=torch.bool)
    wanted = torch.full((len(counts),), float(quota))

    def generators() -> list[torch.Generator]:
        return [torch.Generator().manual_seed(b) for b in range(len(counts))]

    got = draw(able, sentence, wanted, generators())
    assert not (got & ~able).any()
    for b in range(len(counts)):
        own = sentence == b
        assert got[own].sum() == min(quota, int(able[own].sum()))
        alone = draw(able[own], sentence[own] * 0, wanted[:1], [generators()[b]])
        assert torch.equal(alone, got[own])
