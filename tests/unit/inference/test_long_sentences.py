"""Windows over long sentences: entities shorter than the overlap are found at any position."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.encoding import Example
from spandet.errors import ConfigError
from spandet.inference.linking import DecodedEntity
from spandet.inference.long_sentences import (
    LongSentences,
    SentenceWindow,
    joined,
    sentence_windows,
)

SMALL = LongSentences(words=12, overlap=5)


def sentence(length: int, **more: Any) -> Example:
    return Example(tuple(f"w{i}" for i in range(length)), **more)


def entity(*spans: tuple[int, int], score: float = 0.5) -> DecodedEntity:
    return DecodedEntity(0, spans, label=1, score=score, origins=(0,) * len(spans))


def seen(part: SentenceWindow, spans: set[tuple[int, int]]) -> list[DecodedEntity]:
    """The predictions of a perfect model in a window; its edges cut entities."""
    window = part.window
    cut = {(max(s, window.start), min(e, window.end)) for s, e in spans}
    return [
        entity((s - window.start, e - window.start))
        for s, e in sorted(cut, key=lambda span: (span[0], -span[1]))
        if s < e
    ]


spans_of_60 = st.sets(
    st.tuples(st.integers(0, 59), st.integers(1, 4)).map(lambda p: (p[0], min(60, p[0] + p[1]))),
    max_size=30,
)


@given(st.integers(1, 60), spans_of_60)
def test_entities_shorter_than_the_overlap_are_found_at_any_position(
    length: int, spans: set[tuple[int, int]]
) -> None:
    true = {(s, e) for s, e in spans if e <= length}
    windows = sentence_windows([sentence(length)], SMALL, context=0)
    assert all(len(window.example.words) <= SMALL.words for window in windows)
    assert {w for window in windows for w in window.example.words} == set(sentence(length).words)
    (got,) = joined(windows, [seen(window, true) for window in windows], may_cross=True)
    found = [(e.start, e.end) for e in got]
    assert found == sorted(true, key=lambda span: (span[0], -span[1]))


@pytest.mark.parametrize("start", range(41))
def test_longer_entities_are_complete_or_missing(start: int) -> None:
    true = {(start, start + 9)}
    windows = sentence_windows([sentence(50)], SMALL, context=0)
    (got,) = joined(windows, [seen(window, true) for window in windows], may_cross=True)
    assert {(e.start, e.end) for e in got} <= true


def test_a_sentence_that_fits_is_one_window() -> None:
    examples = [sentence(12, left=("a",)), sentence(0), sentence(13)]
    windows = sentence_windows(examples, SMALL, context=3)
    assert windows[0].example is examples[0]
    assert windows[1].example is examples[1]
    found = [[entity((0, 12), score=0.1)], *([[]] * (len(windows) - 1))]
    assert joined(windows, found, may_cross=False) == [found[0], [], []]


def test_windows_have_their_own_context_and_tags() -> None:
    example = sentence(30, tags=tuple(f"t{i}" for i in range(30)), left=("l",), right=("r",))
    windows = sentence_windows([example], SMALL, context=2)
    first, second, last = windows[0], windows[1], windows[-1]
    assert first.example.left == ("l",)
    assert first.example.right == ("w12", "w13")
    assert second.example.left == ("w5", "w6")
    assert last.example.right == ("r",)
    for window in windows:
        assert [w[1:] for w in window.example.words] == [t[1:] for t in window.example.tags]


def test_of_two_crossing_entities_the_higher_scoring_is_kept() -> None:
    windows = sentence_windows([sentence(19)], SMALL, context=0)
    assert [window.window.start for window in windows] == [0, 7]
    low, high = entity((6, 10), score=0.4), entity((1, 5), score=0.9)
    found = [[low], [high]]  # 6:10 and 8:12
    (both,) = joined(windows, found, may_cross=True)
    assert [(e.start, e.end) for e in both] == [(6, 10), (8, 12)]
    (one,) = joined(windows, found, may_cross=False)
    assert [(e.start, e.end) for e in one] == [(8, 12)]


def test_discontinuous_entities_are_shifted_with_their_window() -> None:
    windows = sentence_windows([sentence(19)], SMALL, context=0)
    apart = entity((4, 5), (6, 7), score=0.9)
    (got,) = joined(windows, [[], [apart]], may_cross=False)
    assert got[0].spans == ((11, 12), (13, 14))


def test_an_overlap_over_half_is_refused() -> None:
    with pytest.raises(ConfigError, match="overlap must be at most half of words, 5"):
        LongSentences.build({"words": 10, "overlap": 6}, where="long sentences")
