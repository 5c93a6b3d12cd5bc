"""Attention around places: the sign, the window, the votes, and that padding is never seen."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spandet.layers.spatial_attention import (
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
    """Queries, places near their own words, and what is real; the rest is noise."""
    torch.manual_seed(1)
    queries = torch.randn(len(lengths), width, DIM)
    position = torch.arange(width)[None, :, None] + torch.tensor([0.0, 1.0])
    places = position + torch.rand(len(lengths), width, 2)
    return queries, places, torch.arange(width) < torch.tensor(lengths)[:, None]


def test_the_log_weight_falls_with_the_distance() -> None:
    gaussian = Gaussian(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0, 1.0]]))
    assert gaussian.log_weight(torch.tensor([[3.0, 4.0]])).item() == 0
    assert gaussian.log_weight(torch.tensor([[8.0, 4.0]])).item() == -25
    assert gaussian.log_weight(torch.tensor([[3.0, -1.0]])).item() == -25
    assert gaussian.log_weight(torch.tensor([[6.0, 8.0]])).item() == -25


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_a_bump_is_a_positive_definite_form_around_place_plus_offset(seed: int) -> None:
    torch.manual_seed(seed)
    locator, vectors, places = GaussianHead(DIM), torch.randn(5, DIM) * 3, torch.randn(5, 2) * 9
    gaussian = locator(vectors, places)
    said = locator.net(vectors)
    torch.testing.assert_close(gaussian.centre, places + said[:, :2])
    root = said[:, 2:].view(5, 2, 2)
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


def test_a_bump_without_a_form_still_has_a_centre() -> None:
    locator = GaussianHead(DIM)
    torch.nn.init.zeros_(locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(locator.net[2].bias)  # type: ignore[arg-type]
    gaussian = locator(torch.randn(1, DIM), torch.zeros(1, 2))
    assert gaussian.log_weight(torch.tensor([[30.0, 0.0]])).item() == pytest.approx(-0.09)


def test_without_a_floor_a_bump_may_be_flat() -> None:
    locator = GaussianHead(DIM, floor=0.0)
    torch.nn.init.zeros_(locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(locator.net[2].bias)  # type: ignore[arg-type]
    gaussian = locator(torch.randn(1, DIM), torch.zeros(1, 2))
    assert gaussian.log_weight(torch.tensor([[30.0, 9.0]])).item() == 0


def by_the_book(made: SpatialAttention, queries: Tensor, places: Tensor) -> Attended:
    """Eqs. 12-17 for one sentence, proposal by proposal and head by head."""
    size, style = DIM // HEADS, made.style
    asks, keys, values = made.project(queries).view(-1, 3, HEADS, size).unbind(1)
    seen, centres = torch.zeros(len(queries), HEADS, size), torch.zeros(len(queries), HEADS, 2)
    for i in range(len(queries)):
        for head in range(HEADS):
            gaussian = made.locator(asks[i, head], places[i])
            scores = torch.zeros(len(queries))
            if style.kind != "spatial":
                scores = scores + keys[:, head] @ asks[i, head] / size**0.5
            if style.kind != "dot" and head >= style.global_heads:
                scores = scores + torch.stack([gaussian.log_weight(place) for place in places])
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
def test_attention_is_what_the_equations_say(kind: str, options: dict[str, Any]) -> None:
    made = attention(kind, **options)
    queries, places, mask = sentences(6, width=6)
    got, wanted = made(queries, places, mask), by_the_book(made, queries[0], places[0])
    torch.testing.assert_close(got.values, wanted.values, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(got.soft_spans, wanted.soft_spans, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"global_heads": 1}, {"scale_heads": True}])
def test_a_window_over_all_is_no_window(options: dict[str, Any]) -> None:
    inputs = sentences(9, 4, 0, 1, width=11)
    mask = inputs[2]
    wanted = attention("spatial", **options)(*inputs)
    for window in (9, 11, 64):
        got = attention("spatial_window", window=window, **options)(*inputs)
        torch.testing.assert_close(got.values[mask], wanted.values[mask])
        torch.testing.assert_close(got.soft_spans[mask], wanted.soft_spans[mask])


def test_a_window_sees_only_what_is_near() -> None:
    made = attention("spatial_window", window=5)
    torch.nn.init.zeros_(made.locator.net[2].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(made.locator.net[2].bias)  # type: ignore[arg-type]
    queries, _, mask = sentences(40, width=40)
    places = (torch.arange(40)[:, None] + torch.tensor([0.0, 1.0]))[None]
    before = made(queries, places, mask).values
    changed = queries.clone()
    changed[0, 20] += 1
    touched = (made(changed, places, mask).values != before).any(dim=-1)[0]
    assert touched.nonzero().flatten().tolist() == [18, 19, 20, 21, 22]
    changed = queries.clone()
    changed[0, 39] += 1
    touched = (made(changed, places, mask).values != before).any(dim=-1)[0]
    assert touched.nonzero().flatten().tolist() == [37, 38, 39]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"sentence_key": True}, {"global_heads": 1}])
def test_padding_changes_nothing(kind: str, options: dict[str, Any]) -> None:
    made = attention(kind, **options)
    queries, places, mask = sentences(7, 3, 0, width=10)
    together = made(queries, places, mask)
    assert torch.isfinite(together.values).all()
    for row, length in enumerate((7, 3)):
        inputs = (queries[row : row + 1, :length], places[row : row + 1, :length])
        alone = made(*inputs, mask[row : row + 1, :length])
        torch.testing.assert_close(together.values[row, :length], alone.values[0])
        torch.testing.assert_close(together.soft_spans[row, :length], alone.soft_spans[0])


def test_without_modulation_places_are_not_looked_at() -> None:
    queries, places, mask = sentences(6, width=6)
    for made in (attention("dot"), attention("dot+spatial", global_heads=HEADS)):
        got, other = made(queries, places, mask), made(queries, 5 * places, mask)
        torch.testing.assert_close(got.values, other.values)
        assert not torch.allclose(got.soft_spans, other.soft_spans)
    made = attention("dot+spatial", global_heads=HEADS - 1)
    assert not torch.allclose(
        made(queries, places, mask).values, made(queries, 5 * places, mask).values
    )


def test_the_sentence_key_is_seen_from_everywhere() -> None:
    """However far the others are, the sentence still reaches a proposal."""
    inputs = sentences(5, width=5)
    lonely = (inputs[0], torch.arange(5)[None, :, None].expand(1, 5, 2) * 1e4, inputs[2])
    changed = (inputs[0].clone(), *lonely[1:])
    changed[0][0, 4] += 3
    with_key = attention("dot+spatial", sentence_key=True)
    without = attention("dot+spatial")
    assert torch.equal(without(*lonely).values[0, 0], without(*changed).values[0, 0])
    assert not torch.equal(with_key(*lonely).values[0, 0], with_key(*changed).values[0, 0])


def test_the_new_place_lies_between_the_heads_centres() -> None:
    made = attention("dot+spatial")
    queries, places, mask = sentences(6, width=6)
    asks = made.project(queries)[..., :DIM].view(1, 6, HEADS, -1).transpose(1, 2)
    centres = made.locator(asks, places[:, None].expand(-1, HEADS, -1, -1)).centre
    moved = made(queries, places, mask).soft_spans
    assert (moved >= centres.amin(dim=1) - 1e-5).all()
    assert (moved <= centres.amax(dim=1) + 1e-5).all()


def test_heads_that_do_not_divide_the_vector_leave_the_remainder_out() -> None:
    style = AttentionStyle("dot+spatial", 4, 0, sentence_key=False, scale_heads=False)
    made = SpatialAttention(dim=DIM, heads=5, dropout=0.0, style=style)
    assert made.out.in_features == 10
    assert made(*sentences(3, width=3)).values.shape == (1, 3, DIM)
