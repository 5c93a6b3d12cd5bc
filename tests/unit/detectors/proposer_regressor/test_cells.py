"""The cells of a pyramid, compared with an enumeration one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.detectors.proposer_regressor.cells import cell_widths, cells_of

Cell = tuple[int, int, int]
"""level, sentence, first word"""

KERNELS = st.lists(st.integers(2, 4), max_size=3)
LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)


def listed(lengths: list[int], kernels: list[int]) -> list[Cell]:
    """Every window that fits, level by level, sentence by sentence, from left to right."""
    return [
        (level, sentence, first)
        for level in range(len(kernels) + 1)
        for sentence, length in enumerate(lengths)
        for first in range(length - cell_width(kernels, level) + 1)
    ]


def cell_width(kernels: list[int], level: int) -> int:
    return 1 - level + sum(kernels[:level])


@pytest.mark.parametrize(
    ("kernels", "widths", "counts"),
    [
        ([], (1,), [16]),
        ([2], (1, 2), [16, 15]),
        ([2, 2], (1, 2, 3), [16, 15, 14]),
        ([2, 3], (1, 2, 4), [16, 15, 13]),
        ([2, 2, 2], (1, 2, 3, 4), [16, 15, 14, 13]),
        ([2, 3, 2], (1, 2, 4, 5), [16, 15, 13, 12]),
    ],
)
def test_widths_and_counts_of_the_specification(
    kernels: list[int], widths: tuple[int, ...], counts: list[int]
) -> None:
    assert cell_widths(kernels) == widths
    cells = cells_of([16], kernels)
    assert [len(level.spans) for level in cells.levels] == counts
    assert [level.width for level in cells.levels] == list(widths)


@pytest.mark.parametrize(("length", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (9, 3)])
def test_a_sentence_has_only_the_levels_that_fit_into_it(length: int, levels: int) -> None:
    assert len(cells_of([length], [2, 3]).levels) == levels


@given(LENGTHS, KERNELS)
@settings(max_examples=40)
def test_cells_are_all_windows_that_fit(lengths: list[int], kernels: list[int]) -> None:
    cells, wanted = cells_of(lengths, kernels), listed(lengths, kernels)
    base = [sum(lengths[:sentence]) for sentence in range(len(lengths))]
    for number, level in enumerate(cells.levels):
        own = [cell for cell in wanted if cell[0] == number]
        below = [cell for cell in wanted if cell[0] == number - 1]
        wide = cell_width(kernels, number)
        assert level.spans.tolist() == [[first, first + wide] for _, _, first in own]
        assert level.words.tolist() == [
            [base[sentence] + first + i for i in range(wide)] for _, sentence, first in own
        ]
        assert level.below.tolist() == [
            [below.index((number - 1, s, first + i)) for i in range(kernels[number - 1])]
            if number
            else []
            for _, s, first in own
        ]
        assert level.has_above.tolist() == [(number + 1, s, 0) in wanted for _, s, _ in own]
        assert level.sequences.lengths.tolist() == [
            sum(cell[1] == sentence for cell in own) for sentence in range(len(lengths))
        ]
    assert len(wanted) == sum(len(level.spans) for level in cells.levels)


@given(LENGTHS, KERNELS)
@settings(max_examples=40)
def test_covering_lists_the_cells_that_contain_each_word(
    lengths: list[int], kernels: list[int]
) -> None:
    cells, wanted = cells_of(lengths, kernels), listed(lengths, kernels)
    places = [(s, word) for s, length in enumerate(lengths) for word in range(length)]
    assert len(cells.covering) == len(places)
    for row, (sentence, word) in zip(cells.covering.tolist(), places, strict=True):
        assert sorted(number for number in row if number >= 0) == [
            number
            for number, (level, owner, first) in enumerate(wanted)
            if owner == sentence and first <= word < first + cell_width(kernels, level)
        ]


@given(LENGTHS, KERNELS)
@settings(max_examples=20)
def test_rows_of_cells_are_the_cells_of_each_sentence(
    lengths: list[int], kernels: list[int]
) -> None:
    cells, wanted = cells_of(lengths, kernels), listed(lengths, kernels)
    rows = torch.full(cells.mask.shape, -1).masked_scatter(cells.mask, cells.order)
    for sentence, row in enumerate(rows.tolist()):
        assert [number for number in row if number >= 0] == [
            number for number, cell in enumerate(wanted) if cell[1] == sentence
        ]
