"""A regressor layer updates queries, boundaries and label logits by the equations."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from spandet.layers.regressor import (
    AttentionStyle,
    FeedForwardUpdate,
    GatedUpdate,
    Proposals,
    RegressorLayer,
    SpatialAttention,
)

DIM, LABELS = 8, 4


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
