"""First proposals contain their words, and are means of the cells that contain them."""

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spandet.detectors.proposer_regressor.cells import Cells, cell_widths, cells_of
from spandet.detectors.proposer_regressor.pyramid import CellProposals, ProposalFusion

DIM = 8


def cell_features(cells: Cells, seed: int = 0) -> tuple[Tensor, ...]:
    torch.manual_seed(seed)
    return tuple(torch.randn(len(level.spans), DIM) for level in cells.levels)


def fusion(**options: Any) -> ProposalFusion:
    torch.manual_seed(1)
    made = ProposalFusion(dim=DIM, **{"query": "mixed", "dropout": 0.0, **options})
    with torch.no_grad():
        for parameter in made.scores.parameters():
            parameter.normal_(std=1.5)  # so that shares differ much
    return made


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=3).filter(any),
    st.lists(st.integers(2, 3), max_size=3),
    st.integers(0, 99),
)
@settings(max_examples=30)
def test_a_proposal_contains_its_word_and_is_no_wider_than_the_widest_cell(
    lengths: list[int], kernels: list[int], seed: int
) -> None:
    cells = cells_of(lengths, kernels)
    proposed = fusion()(torch.zeros(sum(lengths), DIM), cell_features(cells, seed), cells)
    word = torch.cat([torch.arange(float(length)) for length in lengths])
    start, end = proposed.soft_spans.unbind(dim=-1)
    widest = cell_widths(kernels)[-1]
    close = 1e-4
    assert (start <= word + close).all()
    assert (end >= word + 1 - close).all()
    assert (start >= word - widest + 1 - close).all()
    assert (end <= word + widest + close).all()
    assert (start >= -close).all()
    if not kernels:
        torch.testing.assert_close(proposed.soft_spans, torch.stack([word, word + 1], dim=1))


def test_proposals_are_averages_over_the_cells_that_contain_the_word() -> None:
    lengths, kernels = [5, 2], [2, 2]
    cells = cells_of(lengths, kernels)
    features, words = cell_features(cells), torch.randn(7, DIM)
    made = fusion()
    got = made(words, features, cells)
    everything = torch.cat(features)
    spans = torch.cat([level.spans for level in cells.levels])
    owner = torch.cat([level.sequences.owner for level in cells.levels])
    scores = made.scores(everything)
    for item, (sentence, word) in enumerate([(0, i) for i in range(5)] + [(1, 0), (1, 1)]):
        over = (owner == sentence) & (spans[:, 0] <= word) & (word < spans[:, 1])
        shares = scores[over].softmax(dim=0)
        torch.testing.assert_close(got.soft_spans[item], (shares * spans[over]).sum(dim=0))
        mixed = (shares.mean(dim=1, keepdim=True) * everything[over]).sum(dim=0)
        assert made.norm is not None
        torch.testing.assert_close(got.queries[item], made.norm(words[item] + mixed))


def test_the_lowest_query_is_the_words_own_cell() -> None:
    cells = cells_of([4, 1], [2])
    features = cell_features(cells)
    got = fusion(query="lowest")(torch.randn(5, DIM), features, cells)
    assert got.queries is features[0]


def test_boundaries_are_exact_in_half_precision() -> None:
    cells = cells_of([600], [])
    with torch.autocast("cpu", torch.bfloat16):
        features = tuple(own.bfloat16() for own in cell_features(cells))
        words = fusion()(torch.zeros(600, DIM), features, cells)
        cellwise = CellProposals(dim=DIM, levels=1)(torch.zeros(600, DIM), features, cells)
    for proposed in (words, cellwise):
        assert proposed.soft_spans[:, 0].tolist() == list(range(600))


def test_cell_proposals_have_the_boundaries_of_their_cells() -> None:
    cells = cells_of([4, 2, 0], [2, 2])
    features = cell_features(cells)
    made = CellProposals(dim=DIM, levels=3)
    got = made(torch.zeros(6, DIM), features, cells)
    assert got.soft_spans.tolist() == [
        *[[i, i + 1] for i in (0, 1, 2, 3, 0, 1)],
        *[[i, i + 2] for i in (0, 1, 2, 0)],
        *[[i, i + 3] for i in (0, 1)],
    ]
    level_embeddings = made.levels.weight[torch.tensor([0] * 6 + [1] * 4 + [2] * 2)]
    torch.testing.assert_close(got.queries, torch.cat(features) + level_embeddings)
