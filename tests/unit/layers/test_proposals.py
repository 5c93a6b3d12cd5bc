"""Proposals contain their words; a regressor layer equals its equations."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spandet.layers.cells import Cells, cell_widths, cells_of
from spandet.layers.proposals import (
    CellProposals,
    FeedForwardUpdate,
    GatedUpdate,
    ProposalFusion,
    Proposals,
    RegressorLayer,
)
from spandet.layers.spatial_attention import AttentionStyle, SpatialAttention

DIM, LABELS = 8, 4


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


def test_a_gated_update_with_norm() -> None:
    """The gate itself is compared with the paper in tests/papers."""
    torch.manual_seed(2)
    made, normed = GatedUpdate(DIM, norm=False), GatedUpdate(DIM, norm=True)
    normed.cell = made.cell
    old, seen = torch.randn(2, 3, DIM), torch.randn(2, 3, DIM)
    assert normed.norm is not None
    torch.testing.assert_close(normed(old, seen), normed.norm(made(old, seen)))


def test_feed_forward_and_residual_updates() -> None:
    torch.manual_seed(3)
    old, seen = torch.randn(2, 3, DIM), torch.randn(2, 3, DIM)
    plain = FeedForwardUpdate(DIM, hidden=0, dropout=0.0)
    torch.testing.assert_close(plain(old, seen), plain.first(old + seen))
    full = FeedForwardUpdate(DIM, hidden=5, dropout=0.0)
    assert full.net is not None
    assert full.second is not None
    first = full.first(old + seen)
    torch.testing.assert_close(full(old, seen), full.second(first + full.net(first)))


def layer(**options: Any) -> RegressorLayer:
    torch.manual_seed(4)
    style = AttentionStyle("dot+spatial", 4, 0, sentence_key=False, scale_heads=False)
    parts: dict[str, Any] = {
        "attention": SpatialAttention(dim=DIM, heads=2, dropout=0.0, style=style),
        "update": GatedUpdate(DIM, norm=False),
        "dim": DIM,
        "labels": LABELS,
        "category_std": 1.0,
        "regress": True,
        "relabel": True,
    }
    return RegressorLayer(**{**parts, **options})


def proposals() -> Proposals:
    torch.manual_seed(5)
    places = torch.rand(2, 5, 2) * 5
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None]
    return Proposals(torch.randn(2, 5, DIM), places, torch.randn(2, 5, LABELS), mask)


def test_a_layer_embeds_labels_attends_updates_regresses_and_relabels() -> None:
    made, given_ = layer(), proposals()
    got = made(given_)
    assert made.categories is not None
    assert made.label_change is not None
    embedded = given_.queries + given_.label_logits.softmax(dim=-1) @ made.categories
    attended = made.attention(embedded, given_.soft_spans, given_.mask)
    queries = made.update(embedded, attended.values)
    torch.testing.assert_close(got.queries, queries)
    torch.testing.assert_close(got.soft_spans, attended.soft_spans)
    torch.testing.assert_close(got.label_logits, given_.label_logits + made.label_change(queries))
    assert got.mask is given_.mask


def test_ablations_of_a_layer() -> None:
    given_ = proposals()
    stays = layer(regress=False)(given_)
    assert stays.soft_spans is given_.soft_spans
    torch.testing.assert_close(stays.queries, layer()(given_).queries)
    same = layer(relabel=False)(given_)
    assert same.label_logits is given_.label_logits
    blind = layer(category_std=None)
    other = replace(given_, label_logits=given_.label_logits + torch.randn(LABELS))
    torch.testing.assert_close(blind(given_).queries, blind(other).queries)
    assert not torch.allclose(layer()(given_).queries, layer()(other).queries)


def test_category_std_scales_the_initial_embeddings() -> None:
    near, far = (layer(category_std=std).categories for std in (0.02, 1.0))
    assert near is not None
    assert far is not None
    torch.testing.assert_close(far, 50 * near)


@pytest.mark.parametrize("count", [0, 1])
def test_a_layer_without_proposals(count: int) -> None:
    empty = Proposals(
        torch.zeros(count, 0, DIM),
        torch.zeros(count, 0, 2),
        torch.zeros(count, 0, LABELS),
        torch.zeros(count, 0, dtype=torch.bool),
    )
    assert layer()(empty).queries.shape == (count, 0, DIM)
