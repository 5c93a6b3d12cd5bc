"""Decoding: worked examples, and laws of its output."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings, decode, without_shared_words

Candidate = tuple[int, int, int, float]
"""start, end, label, probability of the label"""


def batch_of(*sentences: list[Candidate], labels: int = 4) -> Candidates:
    most = max(len(row) for row in sentences)
    spans = np.zeros((len(sentences), most, 2), dtype=np.int64)
    probs = np.zeros((len(sentences), most, labels), dtype=np.float32)
    mask = np.zeros((len(sentences), most), dtype=bool)
    for b, row in enumerate(sentences):
        for i, (start, end, label, score) in enumerate(row):
            spans[b, i] = start, end
            probs[b, i] = (1 - score) / (labels - 1)
            probs[b, i, label] = score
            mask[b, i] = True
    return Candidates(spans, probs, mask)


def decoded(*sentences: list[Candidate], **options: Any) -> list[tuple[int, int, int, int, float]]:
    found = decode(batch_of(*sentences), DecodingSettings.build(options, where="decoding"))
    return [
        (sentence, start, end, label, round(score, 4))
        for sentence, (start, end), label, score in zip(
            found.sentence.tolist(),
            found.spans.tolist(),
            found.labels.tolist(),
            found.scores.tolist(),
            strict=True,
        )
    ]


def test_duplicates_may_be_ranked_by_label_probability() -> None:
    rows: list[Candidate] = [(0, 3, 1, 0.9), (0, 3, 2, 0.8), (0, 3, 2, 0.7), (4, 5, 1, 0.6)]
    given_ = replace(batch_of(rows), type_probs=np.array([[0.5, 0.6, 0.9, 0.3]]))

    def spans(candidates: Candidates, **options: Any) -> list[tuple[int, int, float]]:
        found = decode(candidates, DecodingSettings(**options))
        scores = [round(score, 4) for score in found.scores.tolist()]
        return list(zip(found.origin.tolist(), found.labels.tolist(), scores, strict=True))

    assert spans(given_) == [(0, 1, 0.9), (3, 1, 0.6)]
    assert spans(given_, merge_by="label") == [(2, 2, 0.7), (3, 1, 0.6)]
    # De-duplication comes first: a candidate below the threshold is not replaced by a duplicate.
    assert spans(given_, merge_by="label", threshold=0.75) == []
    each = spans(given_, merge_by="label", one_label=False)
    assert each == [(0, 1, 0.9), (2, 2, 0.7), (3, 1, 0.6)]
    assert spans(batch_of(rows), merge_by="label") == spans(batch_of(rows))


SOFT = {"nms_decay": 0.9, "nms_overlap": 0.6, "threshold": 0.45}


def test_soft_nms_lowers_scores() -> None:
    got = decoded([(0, 5, 1, 0.9), (0, 4, 1, 0.85), (8, 9, 1, 0.8)], **SOFT)
    assert got == [(0, 0, 5, 1, 0.9), (0, 0, 4, 1, 0.765), (0, 8, 9, 1, 0.8)]


def test_soft_nms_drops_candidates_below_the_threshold() -> None:
    assert decoded([(0, 5, 1, 0.9), (0, 4, 1, 0.48)], **SOFT) == [(0, 0, 5, 1, 0.9)]
    assert len(decoded([(0, 5, 1, 0.9), (0, 4, 1, 0.48)], threshold=0.45)) == 2


def test_soft_nms_of_the_released_code() -> None:
    touching: list[Candidate] = [(0, 5, 1, 0.9), (0, 3, 1, 0.8)]  # an overlap of exactly 0.6
    assert decoded(touching, **SOFT)[1] == (0, 0, 3, 1, 0.72)
    assert decoded(touching, nms_rule="released-code", **SOFT)[1] == (0, 0, 3, 1, 0.8)
    # The first lowers the score of the second, not of the third; the second and the third lower
    # each other's scores.
    chain: list[Candidate] = [(0, 10, 1, 0.9), (2, 10, 1, 0.85), (4, 12, 1, 0.8)]
    options = {**SOFT, "nms_overlap": 0.55, "crossing": "keep"}
    assert [e[-1] for e in decoded(chain, **options)] == [0.9, 0.6885, 0.8]
    released = decoded(chain, nms_rule="released-code", **options)
    assert [e[-1] for e in released] == [0.9, 0.765, 0.72]


def test_crossing_rules() -> None:
    pair: list[Candidate] = [(0, 4, 1, 0.99), (2, 6, 1, 0.5)]
    assert len(decoded(pair, crossing="greedy", threshold=0.4)) == 1
    assert decoded(pair, crossing="both", threshold=0.4) == []
    assert len(decoded(pair, crossing="keep", threshold=0.4)) == 2


def test_merging_rules() -> None:
    votes: list[Candidate] = [(0, 2, 1, 0.46), (0, 2, 2, 0.8), (0, 2, 1, 0.45)]
    assert decoded(votes, merge="max", threshold=0.4) == [(0, 0, 2, 2, 0.8)]
    assert decoded(votes, merge="sum", threshold=0.4) == [(0, 0, 2, 1, 0.91)]
    assert decoded(votes, merge="first", threshold=0.4) == [(0, 0, 2, 1, 0.46)]
    assert decoded(votes, merge="first-votes", threshold=0.4) == [(0, 0, 2, 1, 0.92)]


def test_with_merging_after_soft_nms_every_candidate_suppresses() -> None:
    twice: list[Candidate] = [(0, 5, 1, 0.9), (0, 5, 1, 0.88), (0, 4, 1, 0.8), (0, 4, 2, 0.7)]
    options = {**SOFT, "merge": "after", "one_label": False}
    assert decoded(twice, **options) == [
        (0, 0, 5, 1, 0.9),
        (0, 0, 4, 1, 0.648),
        (0, 0, 4, 2, 0.5103),
    ]
    assert decoded(twice, **{**options, "one_label": True}) == decoded(twice, **options)[:2]
    assert decoded(twice, **{**SOFT, "merge": "max"})[1] == (0, 0, 4, 1, 0.72)


def test_candidates_without_entity_and_empty_batches() -> None:
    assert decoded([(0, 1, 0, 0.9)], [], threshold=0) == []
    assert decoded([], []) == []


def test_the_origin_is_the_index_of_the_candidate() -> None:
    found = decode(batch_of([(3, 4, 1, 0.9), (0, 4, 2, 0.8)]), DecodingSettings())
    assert found.spans.tolist() == [[0, 4], [3, 4]]
    assert found.origin.tolist() == [1, 0]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    starts = st.integers(0, 7)
    item = starts.flatmap(
        lambda s: st.tuples(
            st.just(s), st.integers(s + 1, 8), st.integers(0, 3), st.floats(0.3125, 1, width=16)
        )
    )
    return draw(st.lists(item, max_size=9))


@given(
    st.lists(candidates(), min_size=1, max_size=3),
    st.sampled_from(["max", "sum", "first", "first-votes", "noisy-or", "after"]),
    st.sampled_from(["keep", "greedy", "both"]),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.35, 0.6]),
)
def test_spans_are_unique_valid_and_independent_of_the_batch(
    rows: list[list[Candidate]], merge: str, crossing: str, decay: float, threshold: float
) -> None:
    options = {"merge": merge, "crossing": crossing, "nms_decay": decay, "threshold": threshold}
    together = decoded(*rows, **options)
    places = [(b, start, end) for b, start, end, _, _ in together]
    assert len(places) == len(set(places))
    assert all((s, e, k) in {c[:3] for c in rows[b]} for b, s, e, k, _ in together)
    assert all(threshold < score <= 1 for *_, score in together if threshold)
    for b, row in enumerate(rows):
        alone = [(b, *rest) for _, *rest in decoded(row, **options)]
        assert alone == [entity for entity in together if entity[0] == b]


def test_a_threshold_out_of_range_is_refused() -> None:
    with pytest.raises(Exception, match=r"\[decoding\] threshold"):
        decoded([], threshold=2)


def test_two_labels_on_one_span() -> None:
    twice: list[Candidate] = [(0, 2, 1, 0.7), (0, 2, 2, 0.6), (0, 2, 1, 0.5), (1, 2, 3, 0.6)]
    assert decoded(twice, threshold=0) == [(0, 0, 2, 1, 0.7), (0, 1, 2, 3, 0.6)]
    assert decoded(twice, threshold=0, one_label=False) == [
        (0, 0, 2, 1, 0.7),
        (0, 0, 2, 2, 0.6),
        (0, 1, 2, 3, 0.6),
    ]


def test_equal_candidates_raise_the_score() -> None:
    votes: list[Candidate] = [(0, 2, 1, 0.5), (0, 2, 2, 0.6), (0, 2, 1, 0.4), (3, 4, 1, 1.0)]
    options = {"threshold": 0, "merge": "noisy-or"}
    assert decoded(votes, **options) == [(0, 0, 2, 1, 0.7), (0, 3, 4, 1, 1.0)]
    assert (0, 0, 2, 2, 0.6) in decoded(votes, one_label=False, **options)


@pytest.mark.parametrize(
    ("min_odds", "found"), [(0.0, [1, 2, 3]), (0.5, [1, 2]), (0.9, [1]), (1.0, [1])]
)
def test_a_label_must_exceed_a_share_of_no_entity(min_odds: float, found: list[int]) -> None:
    spans = np.array([[[0, 1], [1, 2], [2, 3]]])
    probs = np.array([[[0.3, 0.6, 0.1], [0.55, 0.05, 0.4], [0.8, 0.1, 0.1]]], dtype=np.float32)
    given_ = Candidates(spans, probs, np.ones((1, 3), dtype=bool))
    got = decode(given_, DecodingSettings(threshold=0, min_odds=min_odds))
    assert [end for _, end in got.spans.tolist()] == found
    likeliest = probs.argmax(axis=-1)[0]
    if min_odds == 1:
        assert got.labels.tolist() == likeliest[likeliest > 0].tolist()


def test_a_score_at_the_threshold_is_not_above_it() -> None:
    assert decoded([(0, 1, 1, 0.5), (2, 3, 1, 0.75)]) == [(0, 2, 3, 1, 0.75)]
    assert decoded([(0, 1, 1, 0.75)], threshold=0.75) == []
    # A label must be more probable than "no entity", not equally probable.
    even = Candidates(np.array([[[0, 1]]]), np.array([[[0.5, 0.5]]]), np.array([[True]]))
    assert len(decode(even, DecodingSettings(threshold=0.0)).spans) == 0


def test_default_decoding_removes_crossings_and_lowers_no_scores() -> None:
    nested: list[Candidate] = [(0, 5, 1, 0.9), (0, 4, 1, 0.85), (1, 5, 2, 0.8)]
    assert decoded(nested) == [(0, 0, 5, 1, 0.9), (0, 0, 4, 1, 0.85)]
    kept = decoded(nested, crossing="keep")
    assert kept == [(0, 0, 5, 1, 0.9), (0, 0, 4, 1, 0.85), (0, 1, 5, 2, 0.8)]
    assert DecodingSettings(flat=True, nms_decay=0.5, threshold=0.4).keeping_overlaps == (
        DecodingSettings(flat=False, nms_decay=1.0, threshold=0.4, crossing="keep")
    )


@pytest.mark.parametrize("merge", ["max", "sum", "first", "first-votes", "noisy-or", "after"])
def test_of_many_equal_candidates_on_one_span_the_first_is_kept(merge: str) -> None:
    # More than 16, because fewer are always sorted in a stable way.
    rows: list[Candidate] = [(2, 4, 1 + number % 3, 0.75) for number in range(39)]
    found = decode(batch_of(rows), DecodingSettings(merge=merge))  # type: ignore[arg-type]
    assert found.origin.tolist() == [0]


def test_many_candidates_are_in_reading_order_and_stable() -> None:
    # Outer before inner; crossing candidates and both labels of a span are kept.
    places = [(start, end) for start in range(6) for end in range(6, start, -1)]
    rows: list[Candidate] = [(*place, label, 0.75) for label in (2, 1) for place in places[::-1]]
    found = decode(batch_of(rows), DecodingSettings(crossing="keep", one_label=False))
    assert [tuple(span) for span in found.spans.tolist()] == [p for p in places for _ in range(2)]
    assert found.labels.tolist() == [2, 1] * len(places)


def test_crossing_by_weak_candidates_drops_only_with_crossing_both() -> None:
    rows: list[Candidate] = [(0, 4, 1, 0.75), (2, 6, 1, 0.45)]
    for crossing, left in (("keep", 1), ("greedy", 1), ("both", 0)):
        assert len(decoded(rows, crossing=crossing)) == left
    assert len(decoded(rows, crossing="both", flat=True)) == 1


def test_flat_entities_are_chosen_by_their_final_score() -> None:
    # Two votes of 0.8 give the score 1, which is not above the 1 of the earlier candidate.
    votes: list[Candidate] = [(0, 3, 1, 1.0), (2, 4, 2, 0.8), (2, 4, 2, 0.8), (5, 6, 1, 0.6)]
    found = decoded(votes, merge="sum", flat=True)
    assert found == [(0, 0, 3, 1, 1.0), (0, 5, 6, 1, 0.6)]


def without_overlaps(*items: tuple[float, list[tuple[int, int]]]) -> list[int]:
    """The numbers of the items that `without_shared_words` keeps."""
    numbered = list(enumerate(items))
    kept = without_shared_words(
        numbered, spans=lambda item: item[1][1], score=lambda item: item[1][0]
    )
    return [number for number, _ in kept]


def test_discontinuous_entities_overlap_if_they_share_a_word() -> None:
    # The second lies in the first one's gap; the third shares one word with the first.
    gap = (0.9, [(0, 2), (4, 6)])
    assert without_overlaps(gap, (0.5, [(2, 4)]), (0.8, [(5, 7)])) == [0, 1]
    assert without_overlaps((0.5, [(2, 4)]), (0.6, [(3, 5)]), (0.6, [(0, 3)])) == [2, 1]
    assert without_overlaps((0.5, [(1, 2)]), (0.5, [(1, 4)])) == [1]  # the longer of equals
    assert without_overlaps((0.5, [(1, 2), (3, 4)]), (0.5, [(1, 2), (6, 7)])) == [1]
    assert without_overlaps((0.5, [(3, 9)]), (0.5, [(2, 4)])) == [1]  # the earlier of equals
    assert without_overlaps() == []


def test_decoding_needs_no_torch() -> None:
    code = (
        "import sys; from spandet.inference import decoding, linking, suppression;"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
