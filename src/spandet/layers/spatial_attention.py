"""Spatial attention between proposals, weighted by Gaussians over positions (section 3.3)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spandet.layers.dropout import Dropout
from spandet.layers.mlp import mlp
from spandet.tensors import at_least_float32

Attention = Literal["dot+spatial", "dot", "spatial", "spatial_window"]
FLOOR = 1e-4
_OUTPUTS = 6


@dataclass(frozen=True)
class Gaussian:
    """An unnormalised Gaussian over (start, end): its centre μ and its precision Θ."""

    centre: Float[Tensor, "*shape 2"]
    precision: Float[Tensor, "*shape 3"]
    """Θ = θθᵀ + ε (eq. 13), symmetric and positive: start·start, start·end, end·end."""

    def log_weight(self, places: Float[Tensor, "*other 2"]) -> Float[Tensor, "*both"]:
        """Eq. 12, with the minus sign missing in print: -(x - μ)ᵀ Θ (x - μ), 0 at the centre."""
        starts, ends = (places - self.centre).unbind(dim=-1)
        of_start, of_both, of_end = (-self.precision).unbind(dim=-1)
        pull = torch.addcmul(of_start * starts, 2 * of_both, ends)
        return torch.addcmul(starts * pull, of_end * ends, ends)


class GaussianHead(nn.Module):
    """Predict a Gaussian from a vector, relative to a given position (eq. 13)."""

    def __init__(self, dim: int, *, floor: float = FLOOR) -> None:
        super().__init__()
        self.net = mlp(dim, _OUTPUTS)
        self.floor = floor

    def forward(
        self, vectors: Float[Tensor, "*shape dim"], places: Float[Tensor, "*#shape 2"]
    ) -> Gaussian:
        """The Gaussian of each vector; its centre is an offset from `places`."""
        # Positions are counted in words, which half precision cannot represent.
        outputs = at_least_float32(self.net(vectors))
        a, b, c, d = outputs[..., 2:].unbind(dim=-1)
        precision = [a * a + b * b + self.floor, a * c + b * d, c * c + d * d + self.floor]
        return Gaussian(places + outputs[..., :2], torch.stack(precision, dim=-1))  # eq. 13


@dataclass(frozen=True)
class Attended:
    """The output of attention for each proposal, and its new boundaries."""

    values: Float[Tensor, "batch span dim"]
    soft_spans: Float[Tensor, "batch span 2"]


@dataclass(frozen=True)
class AttentionStyle:
    """Options of the attention between proposals."""

    kind: Attention
    window: int
    """Number of proposals that `spatial_window` attends to."""
    global_heads: int
    """Number of heads without a Gaussian."""
    sentence_key: bool
    """Add a key for the whole sentence, with Gaussian weight 1."""
    scale_heads: bool
    """Multiply the output of each head by its weight in the new boundaries."""
    floor: float = FLOOR
    """ε of eq. 13: a minimum precision, so that no Gaussian is flat in any direction."""


class SpatialAttention(nn.Module):
    """Attention in which each head has a Gaussian; their weighted mean is the new boundaries."""

    def __init__(self, *, dim: int, heads: int, dropout: float, style: AttentionStyle) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.style = style
        inner = heads * self.head_dim
        self.project = nn.Linear(dim, 3 * inner)
        self.locator = GaussianHead(self.head_dim, floor=style.floor)
        self.votes = mlp(self.head_dim, 2)
        self.out = nn.Linear(inner, dim)
        self.summary = nn.Linear(dim, 1) if style.sentence_key else None
        self.summary_key = nn.Linear(dim, 2 * inner) if style.sentence_key else None
        self.dropout = Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch span dim"],
        soft_spans: Float[Tensor, "batch span 2"],
        mask: Bool[Tensor, "batch span"],
    ) -> Attended:
        """Eqs. 12-17: attend to the other proposals and regress the boundaries."""
        # The projections of eq. 14.
        head_queries, keys, values = self._split(
            self.project(queries), 3
        )  # batch head span head_dim
        gaussian: Gaussian = self.locator(head_queries, soft_spans[:, None])
        if self.style.kind == "spatial_window":
            attended = self._from_window(gaussian, values, soft_spans, mask)
        else:
            attended = self._from_all(
                gaussian, head_queries, keys, values, queries, soft_spans, mask
            )
        # Eq. 15: a softmax over heads, for start and for end; in half precision the weights would
        # not sum to 1 and positions would shrink.
        weights = at_least_float32(self.votes(attended)).softmax(dim=1)
        regressed = (weights * gaussian.centre).sum(dim=1)  # eq. 16
        if self.style.scale_heads:
            attended = attended * weights.mean(dim=-1, keepdim=True).to(attended.dtype)
        merged = self.out(attended.transpose(1, 2).flatten(2))  # eq. 17
        return Attended(self.dropout(merged), regressed)

    def _split(self, projected: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Batch span parts*head*head_dim → parts of batch head span head_dim."""
        shape = (*projected.shape[:2], parts, self.heads, self.head_dim)
        return projected.view(shape).permute(2, 0, 3, 1, 4).unbind(0)

    def _from_all(
        self,
        gaussian: Gaussian,
        head_queries: Tensor,
        keys: Tensor,
        values: Tensor,
        queries: Tensor,
        soft_spans: Tensor,
        mask: Tensor,
    ) -> Float[Tensor, "batch head span head_dim"]:
        """Eq. 14: softmax over all proposals of the sentence."""
        count = mask.shape[1]
        if self.style.kind == "dot":
            scores = head_queries.new_zeros(*head_queries.shape[:3], count)
        else:
            around = Gaussian(gaussian.centre[:, :, :, None], gaussian.precision[:, :, :, None])
            scores = self._locally(around.log_weight(soft_spans[:, None, None]))
        if self.summary_key is not None:
            own_key, own_value = self._split(self.summary_key(self._summary(queries, mask)), 2)
            keys = torch.cat([keys, own_key], dim=2)
            values = torch.cat([values, own_value], dim=2)
            scores = torch.cat([scores, scores.new_zeros(*scores.shape[:3], 1)], dim=3)
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
        if self.style.kind != "spatial":
            scores = scores + head_queries @ keys.transpose(2, 3) / self.head_dim**0.5
        scores = scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min)
        attended: Tensor = self.dropout(scores.softmax(dim=-1)).to(values.dtype) @ values
        return attended

    def _locally(
        self, scores: Float[Tensor, "batch head span key"]
    ) -> Float[Tensor, "batch head span key"]:
        """Scores of the heads with a Gaussian; 0 for global heads."""
        if not self.style.global_heads:
            return scores
        number = torch.arange(self.heads, device=scores.device)[:, None, None]
        return scores * (number >= self.style.global_heads)

    def _summary(self, queries: Tensor, mask: Tensor) -> Float[Tensor, "batch 1 dim"]:
        """One vector per sentence: a weighted mean of its proposals."""
        assert self.summary is not None  # noqa: S101 (called only with a sentence key)
        weights = at_least_float32(self.summary(queries))
        weights = weights.masked_fill(~mask[..., None], torch.finfo().min)
        shares = weights.softmax(dim=1).to(queries.dtype)
        summary: Tensor = (shares * queries).sum(dim=1, keepdim=True)
        return summary

    def _from_window(
        self, gaussian: Gaussian, values: Tensor, soft_spans: Tensor, mask: Tensor
    ) -> Float[Tensor, "batch head span head_dim"]:
        """Softmax over the `window` proposals nearest to the centre: linear in the length."""
        count = mask.shape[1]
        width = min(self.style.window, count)
        lengths = mask.sum(dim=1)[:, None, None]
        middle = (gaussian.centre.detach().mean(dim=-1) - 0.5).round().long()
        first = torch.minimum(middle - width // 2, lengths - width).clamp(min=0)
        index = first[..., None] + torch.arange(width, device=mask.device)  # batch head span width
        batch = torch.arange(len(mask), device=mask.device)[:, None, None, None]
        head = torch.arange(self.heads, device=mask.device)[:, None, None]
        around = Gaussian(gaussian.centre[:, :, :, None], gaussian.precision[:, :, :, None])
        scores = self._locally(around.log_weight(soft_spans[batch, index]))
        scores = scores.masked_fill(~mask[batch, index], torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(dim=-1)).to(values.dtype)
        return torch.einsum("bhsw,bhswd->bhsd", weights, values[batch, head, index])
