"""Geometry against brute force."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.detectors.locate_and_label.seeds import draw
from spandet.spans.flat import FlatSpans, enumerate_spans
from spandet.spans.overlap import iou
from spandet.spans.pooling import RangeMaximum

LAW = settings(max_examples=60)


@st.composite
def some_spans(draw: st.DrawFn, words: int = 12, least: int = 0) -> list[tuple[int, int]]:
    starts = st.integers(0, words - 1)
    pair = starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(s + 1, words)))
    return draw(st.lists(pair, min_size=least, max_size=8))


@given(some_spans(least=1), some_spans(least=1))
@LAW
def test_iou_agrees_with_counting_words(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = torch.tensor(a)[:, None], torch.tensor(b)[None]
    got = iou(left, right)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            p, q = set(range(*x)), set(range(*y))
            assert abs(got[i, j].item() - len(p & q) / len(p | q)) < 1e-6


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


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 12), st.data())
@LAW
def test_sampling_respects_quota_mask_and_sentence(
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
