"""Depths and crossings by hand: single envelopes, pairs and longer chains beside each other."""

from __future__ import annotations

import pytest

from spandet.evaluation.items import Envelope, Visible, fragments_of
from spandet.evaluation.structure import (
    count_crossing_pairs,
    crosses,
    crossing,
    nested_depths,
    sweep_for_crossing,
)


@pytest.mark.parametrize(
    ("ordered", "depths"),
    [
        ([], {}),
        ([(0, 2)], {}),
        ([(0, 2), (2, 4), (4, 5)], {}),
        ([(0, 4), (1, 2)], {(0, 4): 1, (1, 2): 2}),
        ([(0, 4), (1, 2), (4, 5)], {(0, 4): 1, (1, 2): 2}),
        ([(0, 1), (2, 6), (3, 4), (6, 9), (7, 9)], {(2, 6): 1, (3, 4): 2, (6, 9): 1, (7, 9): 2}),
        ([(0, 4), (2, 6), (5, 8), (6, 7)], {(5, 8): 1, (6, 7): 2}),
        ([(0, 9), (1, 8), (2, 7), (3, 4)], {(0, 9): 1, (1, 8): 2, (2, 7): 3, (3, 4): 4}),
        ([(0, 3), (0, 5), (1, 5)], {(0, 3): 2, (0, 5): 1, (1, 5): 2}),
        ([(0, 4), (0, 4)], {}),
    ],
)
def test_depths_of_what_is_nested(ordered: list[Envelope], depths: dict[Envelope, int]) -> None:
    assert nested_depths(ordered) == depths


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ((2, 6), False), ((1, 3), True), ((5, 8), True), ((3, 5), False), ((0, 9), False),
        ((2, 4), False), ((4, 6), False), ((2, 8), False), ((0, 6), False), ((0, 2), False),
        ((6, 8), False), ((1, 5), True), ((3, 8), True),
    ],
)  # fmt: skip
def test_crossing_is_overlap_without_containment(other: Envelope, *, expected: bool) -> None:
    assert crosses((2, 6), other) is crosses(other, (2, 6)) is expected
    found = {(2, 6)} if expected else set()
    assert crossing([(2, 6)], [other]) == sweep_for_crossing([(2, 6)], [other]) == found
    assert count_crossing_pairs([(2, 6), other]) == expected
    assert count_crossing_pairs([(2, 6), other, other]) == 2 * expected


def test_many_are_swept_and_few_compared_with_the_same_result() -> None:
    some = [(start, start + 3) for start in range(0, 40, 4)]
    for others in (some, [(start, start + 4) for start in range(1, 44, 4)]):
        assert crossing(some, others) == sweep_for_crossing(some, others)
    assert crossing(some, some) == set()
    assert crossing(some, [(2, 5)]) == {(0, 3), (4, 7)}


def test_offsets_count_visible_characters() -> None:
    visible = Visible(" a b\tc ")
    offsets = list(range(8))
    assert [visible.before(offset) for offset in offsets] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert visible.before_each(offsets) == (0, 0, 1, 1, 2, 2, 3, 3)
    items = [(1, 6, (2, 3), "only space"), (1, 6, (2, 5), "gap")]
    assert visible.visible_items(items) == {(0, 3, (), "only space"), (0, 3, (1, 2), "gap")}


def test_fragments_lie_between_gaps() -> None:
    assert fragments_of((0, 9, (), "x")) == [(0, 9)]
    assert fragments_of((0, 9, (2, 3, 5, 7), "x")) == [(0, 2), (3, 5), (7, 9)]
