"""Proposals from a pyramid of cells, and layers that refine them (sections 3.2 and 3.3)."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.layers.cells import Cells
from spandet.layers.dropout import Dropout
from spandet.layers.mlp import mlp
from spandet.layers.spatial_attention import Attended, SpatialAttention
from spandet.tensors import at_least_float32

Query = Literal["mixed", "lowest"]
Update = Literal["gate", "ffn", "residual"]
EMBEDDING_STD = 0.02


@dataclass(frozen=True)
class Proposals:
    """Proposals of each sentence: vectors, real-valued boundaries and label logits."""

    queries: Float[Tensor, "batch span dim"]
    soft_spans: Float[Tensor, "batch span 2"]
    label_logits: Float[Tensor, "batch span label"]
    mask: Bool[Tensor, "batch span"]


@dataclass(frozen=True)
class FlatProposals:
    """Proposals of all sentences in one flat list, without labels."""

    queries: Float[Tensor, "item dim"]
    soft_spans: Float[Tensor, "item 2"]


class ProposalFusion(nn.Module):
    """One proposal per word, averaged over all cells of the pyramid that contain it (eqs. 8-9)."""

    def __init__(self, *, dim: int, query: Query, dropout: float) -> None:
        super().__init__()
        self.scores = mlp(dim, 2)
        self.query = query
        self.norm = nn.LayerNorm(dim) if query == "mixed" else None
        self.dropout = Dropout(dropout)

    def forward(
        self,
        words: Float[Tensor, "item dim"],
        features: tuple[Float[Tensor, "_ dim"], ...],
        cells: Cells,
    ) -> FlatProposals:
        """Average boundaries and features of the cells that contain each word."""
        spans = torch.cat([level.spans for level in cells.levels])
        base = words if self.query == "mixed" else features[0]
        return self.mix(base, torch.cat(features), spans, cells.covering)

    def mix(
        self,
        base: Float[Tensor, "item dim"],
        cells: Float[Tensor, "cell dim"],
        spans: Float[Tensor, "cell 2"],
        covering: Int[Tensor, "item cover"],
    ) -> FlatProposals:
        """Queries and boundaries from `base` (words or level 0) and all cells that contain them."""
        cover = covering.clamp(min=0)  # item cover
        # Positions are counted in words, which half precision cannot represent.
        scores = at_least_float32(self.scores(cells)[cover])
        scores = scores.masked_fill((covering < 0)[..., None], -torch.inf)
        shares = scores.softmax(dim=1)  # item cover 2: eq. 8, for start and for end
        places = (shares * spans[cover]).sum(dim=1)  # eq. 9
        if self.norm is None:
            return FlatProposals(base, places)
        weights = shares.mean(dim=-1).to(cells.dtype)
        mixed = torch.einsum("ic,icd->id", weights, cells[cover])
        return FlatProposals(self.norm(base + self.dropout(mixed)), places)


class CellProposals(nn.Module):
    """One proposal per cell of the pyramid, with the boundaries of the cell."""

    def __init__(self, *, dim: int, levels: int) -> None:
        super().__init__()
        self.levels = nn.Embedding(levels, dim)
        nn.init.normal_(self.levels.weight, std=EMBEDDING_STD)

    def forward(
        self,
        words: Float[Tensor, "item dim"],
        features: tuple[Float[Tensor, "_ dim"], ...],
        cells: Cells,
    ) -> FlatProposals:
        """The cells with an embedding of their level."""
        del words  # contained in the cells
        queries = [own + self.levels.weight[number] for number, own in enumerate(features)]
        return FlatProposals(torch.cat(queries), torch.cat([level.spans for level in cells.levels]))


class GatedUpdate(nn.Module):
    """Eqs. 18-19: update the query with a GRU cell."""

    def __init__(self, dim: int, *, norm: bool) -> None:
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.norm = nn.LayerNorm(dim) if norm else None

    def forward(self, old: Tensor, seen: Tensor) -> Tensor:
        """The new query."""
        new: Tensor = self.cell(seen.flatten(0, 1), old.flatten(0, 1)).view_as(old)
        return new if self.norm is None else self.norm(new)


class FeedForwardUpdate(nn.Module):
    """Residual connection and norm as in a transformer; with `hidden`, a feed-forward network."""

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

    With `category_std`, an embedding of the current labels is added to the queries (eq. 11); it is
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
        """Section 3.3, from eq. 11 to eq. 20."""
        queries, soft_spans = proposals.queries, proposals.soft_spans
        logits, mask = proposals.label_logits, proposals.mask
        if self.categories is not None:  # eq. 11
            queries = queries + logits.softmax(dim=-1) @ self.categories
        attended: Attended = self.attention(queries, soft_spans, mask)
        queries = self.update(queries, attended.values)
        if self.label_change is not None:  # eq. 20
            logits = logits + self.label_change(queries)
        if self.regress:
            soft_spans = attended.soft_spans
        return Proposals(queries, soft_spans, logits, mask)
