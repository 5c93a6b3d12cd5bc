"""Windows over long sentences: what is shorter than the overlap is found wherever it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.encoding import Example
from spandet.errors import ConfigError
from spandet.inference.long_sentences import LongSentences, Part, joined, parts_of
from spandet.text import Entity, WordSpan

SMALL = LongSentences(words=12, overlap=5)


def sentence(length: int, **more: tuple[str, ...]) -> Example:
    return Example(tuple(f"w{i}" for i in range(length)), **more)


def seen(part: Part, spans: set[tuple[int, int]]) -> list[Entity[WordSpan]]:
    """What a perfect finder sees in a window: what it holds, and what its edges leave."""
    window = part.window
    cut = {(max(s, window.start), min(e, window.end)) for s, e in spans}
    return [
        Entity(WordSpan(s - window.start, e - window.start), "x", 0.5)
        for s, e in sorted(cut, key=lambda span: (span[0], -span[1]))
        if s < e
    ]


spans_of_60 = st.sets(
    st.tuples(st.integers(0, 59), st.integers(1, 4)).map(lambda p: (p[0], min(60, p[0] + p[1]))),
    max_size=30,
)


@given(st.integers(1, 60), spans_of_60)
def test_short_entities_are_found_wherever_they_stand(
    length: int, spans: set[tuple[int, int]]
) -> None:
    true = {(s, e) for s, e in spans if e <= length}
    parts = parts_of([sentence(length)], SMALL, context=0)
    assert all(len(part.example.words) <= SMALL.words for part in parts)
    assert {w for part in parts for w in part.example.words} == set(sentence(length).words)
    (got,) = joined(parts, [seen(part, true) for part in parts], may_cross=True)
    found = [(e.span.start, e.span.end) for e in got]
    assert found == sorted(true, key=lambda span: (span[0], -span[1]))


@pytest.mark.parametrize("start", range(41))
def test_what_is_longer_is_whole_or_missing(start: int) -> None:
    true = {(start, start + 9)}
    parts = parts_of([sentence(50)], SMALL, context=0)
    (got,) = joined(parts, [seen(part, true) for part in parts], may_cross=True)
    assert {(e.span.start, e.span.end) for e in got} <= true


def test_a_sentence_that_fits_is_left_alone() -> None:
    examples = [sentence(12, left=("a",)), sentence(0), sentence(13)]
    parts = parts_of(examples, SMALL, context=3)
    assert parts[0].example is examples[0]
    assert parts[1].example is examples[1]
    found = [[Entity(WordSpan(0, 12), "x", 0.1)], *([[]] * (len(parts) - 1))]
    assert joined(parts, found, may_cross=False) == [found[0], [], []]


def test_windows_have_context_and_tags_of_their_own() -> None:
    example = sentence(30, tags=tuple(f"t{i}" for i in range(30)), left=("l",), right=("r",))
    parts = parts_of([example], SMALL, context=2)
    first, second, last = parts[0], parts[1], parts[-1]
    assert first.example.left == ("l",)
    assert first.example.right == ("w12", "w13")
    assert second.example.left == ("w5", "w6")
    assert last.example.right == ("r",)
    for part in parts:
        assert [w[1:] for w in part.example.words] == [t[1:] for t in part.example.tags]


def test_of_two_that_cross_the_surer_one_stays() -> None:
    parts = parts_of([sentence(19)], SMALL, context=0)
    assert [part.window.start for part in parts] == [0, 7]
    weak, sure = Entity(WordSpan(6, 10), "x", 0.4), Entity(WordSpan(1, 5), "x", 0.9)
    found = [[weak], [sure]]  # 6:10 and 8:12
    (both,) = joined(parts, found, may_cross=True)
    assert [(e.span.start, e.span.end) for e in both] == [(6, 10), (8, 12)]
    (one,) = joined(parts, found, may_cross=False)
    assert [(e.span.start, e.span.end) for e in one] == [(8, 12)]


def test_a_gap_moves_along() -> None:
    parts = parts_of([sentence(19)], SMALL, context=0)
    apart = Entity.from_fragments([WordSpan(4, 5), WordSpan(6, 7)], "x", 0.9)
    (got,) = joined(parts, [[], [apart]], may_cross=False)
    assert got[0].fragments == (WordSpan(11, 12), WordSpan(13, 14))


def test_an_overlap_over_half_is_refused() -> None:
    with pytest.raises(ConfigError, match="overlap must be at most half of words, 5"):
        LongSentences.build({"words": 10, "overlap": 6}, where="long sentences")
