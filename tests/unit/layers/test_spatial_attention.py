"""Spatial attention: Gaussian weights, windows, regressed boundaries, independence of padding."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spandet.layers.regressor import (
    Attended,
    AttentionStyle,
    Gaussian,
    GaussianHead,
    SpatialAttention,
)

DIM, HEADS = 12, 3
KINDS = ["dot+spatial", "dot", "spatial", "spatial_window"]


def attention(kind: str, **options: Any) -> SpatialAttention:
    torch.manual_seed(0)
    values: dict[str, Any] = {
        "window": 4,
        "global_heads": 0,
        "sentence_key": False,
        "scale_heads": False,
    }
    style = AttentionStyle(kind=kind, **{**values, **options})  # type: ignore[arg-type]
    made = SpatialAttention(dim=DIM, heads=HEADS, dropout=0.0, style=style)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.4)
    return made.eval()


def sentences(*lengths: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, positions near their own words, and the mask; padding is random."""
    torch.manual_seed(1)
    queries = torch.randn(len(lengths), width, DIM)
    position = torch.arange(width)[None, :, None] + torch.tensor([0.0, 1.0])
    positions = position + torch.rand(len(lengths), width, 2)
    return queries, positions, torch.arange(width) < torch.tensor(lengths)[:, None]


def test_the_log_weight_falls_with_the_distance() -> None:
    gaussian = Gaussian(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0, 1.0]]))
    assert gaussian.log_weight(torch.tensor([[3.0, 4.0]])).item() == 0
    assert gaussian.log_weight(torch.tensor([[8.0, 4.0]])).item() == -25
    assert gaussian.log_weight(torch.tensor([[3.0, -1.0]])).item() == -25
    assert gaussian.log_weight(torch.tensor([[6.0, 8.0]])).item() == -25


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_a_gaussian_is_positive_definite_and_centred_at_position_plus_offset(seed: int) -> None:
    torch.manual_seed(seed)
    locator, vectors, positions = GaussianHead(DIM), torch.randn(5, DIM) * 3, torch.randn(5, 2) * 9
    gaussian = locator(vectors, positions)
    outputs = locator.net(vectors)
    torch.testing.assert_close(gaussian.centre, positions + outputs[:, :2])
    root = outputs[:, 2:].view(5, 2, 2)
    form = root @ root.transpose(1, 2) + 1e-4 * torch.eye(2)
    own = gaussian.precision[:, [0, 1, 1, 2]].view(5, 2, 2)
    torch.testing.assert_close(own, form)
    assert (torch.linalg.eigvalsh(own.double()) > 0).all()
    away = torch.randn(5, 2) * 4
    wanted = -(
        (away - gaussian.centre)[:, None] @ form @ (away - gaussian.centre)[..., None]
    ).flatten()
    torch.testing.assert_close(gaussian.log_weight(away), wanted, atol=1e-3, rtol=1e-4)
    assert (gaussian.log_weight(away) <= 0).all()


def test_the_floor_keeps_a_minimum_precision() -> None:
    locator = GaussianHead(DIM)
    torch.nn.init.zeros_(locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(locator.net[2].bias)  # type: ignore[arg-type]
    gaussian = locator(torch.randn(1, DIM), torch.zeros(1, 2))
    assert gaussian.log_weight(torch.tensor([[30.0, 0.0]])).item() == pytest.approx(-0.09)


def test_without_a_floor_a_gaussian_may_be_flat() -> None:
    locator = GaussianHead(DIM, floor=0.0)
    torch.nn.init.zeros_(locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(locator.net[2].bias)  # type: ignore[arg-type]
    gaussian = locator(torch.randn(1, DIM), torch.zeros(1, 2))
    assert gaussian.log_weight(torch.tensor([[30.0, 9.0]])).item() == 0


def attention_in_loops(made: SpatialAttention, queries: Tensor, positions: Tensor) -> Attended:
    """Eqs. 12-17 for one sentence, proposal by proposal and head by head."""
    size, style = DIM // HEADS, made.style
    head_queries, keys, values = made.project(queries).view(-1, 3, HEADS, size).unbind(1)
    seen, centres = torch.zeros(len(queries), HEADS, size), torch.zeros(len(queries), HEADS, 2)
    for i in range(len(queries)):
        for head in range(HEADS):
            gaussian = made.locator(head_queries[i, head], positions[i])
            scores = torch.zeros(len(queries))
            if style.kind != "spatial":
                scores = scores + keys[:, head] @ head_queries[i, head] / size**0.5
            if style.kind != "dot" and head >= style.global_heads:
                scores = scores + torch.stack([gaussian.log_weight(place) for place in positions])
            seen[i, head] = scores.softmax(dim=0) @ values[:, head]
            centres[i, head] = gaussian.centre
    votes = made.votes(seen).softmax(dim=1)
    if style.scale_heads:
        merged = made.out((seen * votes.mean(dim=-1, keepdim=True)).flatten(1))
    else:
        merged = made.out(seen.flatten(1))
    return Attended(merged[None], (votes * centres).sum(dim=1)[None])


@pytest.mark.parametrize("kind", ["dot+spatial", "dot", "spatial"])
@pytest.mark.parametrize(
    "options", [{}, {"global_heads": 2}, {"scale_heads": True}, {"global_heads": HEADS}]
)
def test_attention_equals_the_equations_in_loops(kind: str, options: dict[str, Any]) -> None:
    made = attention(kind, **options)
    queries, positions, mask = sentences(6, width=6)
    got, wanted = made(queries, positions, mask), attention_in_loops(made, queries[0], positions[0])
    torch.testing.assert_close(got.values, wanted.values, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(got.soft_spans, wanted.soft_spans, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"global_heads": 1}, {"scale_heads": True}])
def test_a_window_over_all_proposals_equals_full_attention(options: dict[str, Any]) -> None:
    inputs = sentences(9, 4, 0, 1, width=11)
    mask = inputs[2]
    wanted = attention("spatial", **options)(*inputs)
    for window in (9, 11, 64):
        got = attention("spatial_window", window=window, **options)(*inputs)
        torch.testing.assert_close(got.values[mask], wanted.values[mask])
        torch.testing.assert_close(got.soft_spans[mask], wanted.soft_spans[mask])


def test_a_window_attends_only_to_near_proposals() -> None:
    made = attention("spatial_window", window=5)
    torch.nn.init.zeros_(made.locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(made.locator.net[2].bias)  # type: ignore[arg-type]
    queries, _, mask = sentences(40, width=40)
    positions = (torch.arange(40)[:, None] + torch.tensor([0.0, 1.0]))[None]
    before = made(queries, positions, mask).values
    changed = queries.clone()
    changed[0, 20] += 1
    touched = (made(changed, positions, mask).values != before).any(dim=-1)[0]
    assert touched.nonzero().flatten().tolist() == [18, 19, 20, 21, 22]
    changed = queries.clone()
    changed[0, 39] += 1
    touched = (made(changed, positions, mask).values != before).any(dim=-1)[0]
    assert touched.nonzero().flatten().tolist() == [37, 38, 39]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"sentence_key": True}, {"global_heads": 1}])
def test_padding_changes_nothing(kind: str, options: dict[str, Any]) -> None:
    made = attention(kind, **options)
    queries, positions, mask = sentences(7, 3, 0, width=10)
    together = made(queries, positions, mask)
    assert torch.isfinite(together.values).all()
    for row, length in enumerate((7, 3)):
        inputs = (queries[row : row + 1, :length], positions[row : row + 1, :length])
        alone = made(*inputs, mask[row : row + 1, :length])
        torch.testing.assert_close(together.values[row, :length], alone.values[0])
        torch.testing.assert_close(together.soft_spans[row, :length], alone.soft_spans[0])


def test_without_gaussians_attention_ignores_positions() -> None:
    queries, positions, mask = sentences(6, width=6)
    for made in (attention("dot"), attention("dot+spatial", global_heads=HEADS)):
        got, other = made(queries, positions, mask), made(queries, 5 * positions, mask)
        torch.testing.assert_close(got.values, other.values)
        assert not torch.allclose(got.soft_spans, other.soft_spans)
    made = attention("dot+spatial", global_heads=HEADS - 1)
    assert not torch.allclose(
        made(queries, positions, mask).values, made(queries, 5 * positions, mask).values
    )


def test_the_sentence_key_is_attended_to_from_any_distance() -> None:
    """However far the other proposals are, a proposal attends to the sentence."""
    inputs = sentences(5, width=5)
    lonely = (inputs[0], torch.arange(5)[None, :, None].expand(1, 5, 2) * 1e4, inputs[2])
    changed = (inputs[0].clone(), *lonely[1:])
    changed[0][0, 4] += 3
    with_key = attention("dot+spatial", sentence_key=True)
    without = attention("dot+spatial")
    assert torch.equal(without(*lonely).values[0, 0], without(*changed).values[0, 0])
    assert not torch.equal(with_key(*lonely).values[0, 0], with_key(*changed).values[0, 0])


def test_the_regressed_boundaries_lie_between_the_centres_of_the_heads() -> None:
    made = attention("dot+spatial")
    queries, positions, mask = sentences(6, width=6)
    head_queries = made.project(queries)[..., :DIM].view(1, 6, HEADS, -1).transpose(1, 2)
    centres = made.locator(head_queries, positions[:, None].expand(-1, HEADS, -1, -1)).centre
    regressed = made(queries, positions, mask).soft_spans
    assert (regressed >= centres.amin(dim=1) - 1e-5).all()
    assert (regressed <= centres.amax(dim=1) + 1e-5).all()


def test_heads_that_do_not_divide_the_dimension_leave_the_remainder_out() -> None:
    style = AttentionStyle("dot+spatial", 4, 0, sentence_key=False, scale_heads=False)
    made = SpatialAttention(dim=DIM, heads=5, dropout=0.0, style=style)
    assert made.out.in_features == 10
    assert made(*sentences(3, width=3)).values.shape == (1, 3, DIM)
