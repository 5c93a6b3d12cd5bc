"""The regressor of Proposer and Regressor (section 3.3): attention that refines proposals.

The layers are shared: span-jury refines its nominees with them, and the head of proposer-regressor
has the same Gaussians.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spandet.layers.choices import FLOOR, Attention
from spandet.layers.dropout import Dropout
from spandet.tensors import at_least_float32

_OUTPUTS = 6


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    """The paper's "MLP": Linear → GELU → Linear, half as wide in the middle."""
    middle = max(inputs // 2, 1)
    return nn.Sequential(nn.Linear(inputs, middle), nn.GELU(), nn.Linear(middle, outputs))


@dataclass(frozen=True)
class Proposals:
    """Proposals of each sentence."""

    queries: Float[Tensor, "batch span dim"]
    """q: the vector of each proposal."""
    soft_spans: Float[Tensor, "batch span 2"]
    """n: its start and its end, as real numbers of words."""
    label_logits: Float[Tensor, "batch span label"]
    """c, the paper's "category logarithms"; label 0 is the paper's None."""
    mask: Bool[Tensor, "batch span"]


@dataclass(frozen=True)
class Gaussian:
    """An unnormalised Gaussian over (start, end): its centre μ and its precision Θ."""

    centre: Float[Tensor, "*shape 2"]
    precision: Float[Tensor, "*shape 3"]
    """The entries start·start, start·end and end·end of the symmetric matrix Θ."""

    def log_weight(self, places: Float[Tensor, "*other 2"]) -> Float[Tensor, "*both"]:
        """Eq. 12: log G(x) = -(x - μ)ᵀ Θ (x - μ); the minus sign is missing in the paper."""
        starts, ends = (places - self.centre).unbind(dim=-1)
        of_start, of_both, of_end = (-self.precision).unbind(dim=-1)
        pull = torch.addcmul(of_start * starts, 2 * of_both, ends)
        return torch.addcmul(starts * pull, of_end * ends, ends)


class GaussianHead(nn.Module):
    """Predict a Gaussian from a vector, relative to a given position."""

    def __init__(self, dim: int, *, floor: float = FLOOR) -> None:
        super().__init__()
        self.net = mlp(dim, _OUTPUTS)
        self.floor = floor

    def forward(
        self, vectors: Float[Tensor, "*shape dim"], places: Float[Tensor, "*#shape 2"]
    ) -> Gaussian:
        """Eq. 13: μ = n + Δn and Θ = θθᵀ + ε, with n = `places` and Δn, θ from the vectors."""
        # Positions are counted in words, which half precision cannot represent.
        outputs = at_least_float32(self.net(vectors))
        a, b, c, d = outputs[..., 2:].unbind(dim=-1)
        precision = [a * a + b * b + self.floor, a * c + b * d, c * c + d * d + self.floor]
        return Gaussian(places + outputs[..., :2], torch.stack(precision, dim=-1))


@dataclass(frozen=True)
class Attended:
    """The output q' of attention for each proposal, and its new boundaries n."""

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
    """ε, a minimum precision, so that no Gaussian is flat in any direction; 0 in the paper."""


class SpatialAttention(nn.Module):
    """Spatially modulated attention: each head of each proposal has a Gaussian over positions.

    The new boundaries of a proposal are the weighted mean of the centres of its Gaussians.
    """

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
        """Attend to the other proposals and regress the boundaries."""
        # The three linear maps of eq. 14, each batch head span head_dim.
        head_queries, keys, values = self._split(self.project(queries), 3)
        gaussian: Gaussian = self.locator(head_queries, soft_spans[:, None])
        if self.style.kind == "spatial_window":
            attended = self._from_window(gaussian, values, soft_spans, mask)
        else:
            attended = self._from_all(
                gaussian, head_queries, keys, values, queries, soft_spans, mask
            )
        # Eq. 15: a softmax over heads, for start and for end. In half precision the weights would
        # not sum to 1, and positions would shrink.
        weights = at_least_float32(self.votes(attended)).softmax(dim=1)
        regressed = (weights * gaussian.centre).sum(dim=1)  # eq. 16: n
        if self.style.scale_heads:
            attended = attended * weights.mean(dim=-1, keepdim=True).to(attended.dtype)
        merged = self.out(attended.transpose(1, 2).flatten(2))  # eq. 17: q'
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
        """Eq. 14: o, with a softmax over all proposals of the sentence."""
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


class GatedUpdate(nn.Module):
    """The gated update of queries: a GRU cell."""

    def __init__(self, dim: int, *, norm: bool) -> None:
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.norm = nn.LayerNorm(dim) if norm else None

    def forward(self, old: Tensor, seen: Tensor) -> Tensor:
        """Eqs. 18-19: Gate(h', q'); its input is q', its hidden state is h'."""
        new: Tensor = self.cell(seen.flatten(0, 1), old.flatten(0, 1)).view_as(old)
        return new if self.norm is None else self.norm(new)


class FeedForwardUpdate(nn.Module):
    """The update of a transformer layer, without the gate.

    Residual connection and norm; with `hidden`, a feed-forward network of this size after them.
    """

    def __init__(self, dim: int, *, hidden: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.LayerNorm(dim)
        self.net = (
            nn.Sequential(
                nn.Linear(dim, hidden),
                nn.GELU(),
                Dropout(dropout),
                nn.Linear(hidden, dim),
                Dropout(dropout),
            )
            if hidden
            else None
        )
        self.second = nn.LayerNorm(dim) if hidden else None

    def forward(self, old: Tensor, seen: Tensor) -> Tensor:
        """The new query."""
        new: Tensor = self.first(old + seen)
        if self.net is None or self.second is None:
            return new
        finished: Tensor = self.second(new + self.net(new))
        return finished


class RegressorLayer(nn.Module):
    """Attention between proposals that updates their boundaries, queries and label logits.

    With `category_std`, an embedding of the current labels is added to the queries; it is
    initialised with this standard deviation.
    """

    def __init__(
        self,
        *,
        attention: SpatialAttention,
        update: nn.Module,
        dim: int,
        labels: int,
        category_std: float | None,
        regress: bool,
        relabel: bool,
    ) -> None:
        super().__init__()
        self.attention, self.update = attention, update
        self.categories = None if category_std is None else nn.Parameter(torch.empty(labels, dim))
        self.label_change = mlp(dim, labels) if relabel else None
        self.regress = regress
        if self.categories is not None and category_std is not None:
            nn.init.normal_(self.categories, std=category_std)

    def forward(self, proposals: Proposals) -> Proposals:
        """The proposals after one layer."""
        queries, soft_spans = proposals.queries, proposals.soft_spans
        logits, mask = proposals.label_logits, proposals.mask
        if self.categories is not None:  # eq. 11: h'
            queries = queries + logits.softmax(dim=-1) @ self.categories
        attended: Attended = self.attention(queries, soft_spans, mask)
        queries = self.update(queries, attended.values)
        if self.label_change is not None:  # eq. 20: c
            logits = logits + self.label_change(queries)
        if self.regress:
            soft_spans = attended.soft_spans
        return Proposals(queries, soft_spans, logits, mask)
