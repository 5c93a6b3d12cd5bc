"""Proposals, where they come from, and one round of refining them (sections 3.2 and 3.3)."""

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
    """FlatProposals at entities: what each is like, where it is, and what it is taken for."""

    queries: Float[Tensor, "batch span dim"]
    soft_spans: Float[Tensor, "batch span 2"]
    label_logits: Float[Tensor, "batch span label"]
    mask: Bool[Tensor, "batch span"]


@dataclass(frozen=True)
class FlatProposals:
    """Proposals in one flat list, before their labels."""

    queries: Float[Tensor, "item dim"]
    soft_spans: Float[Tensor, "item 2"]


class ProposalFusion(nn.Module):
    """One guess per word, out of all cells of the pyramid that see it (eqs. 8-9)."""

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
        """Mix boundaries, and features, of the cells that see each word."""
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
        """Queries and places, from the words or the lowest cells and from all that cover them."""
        cover = covering.clamp(min=0)  # item cover
        # Half precision cannot count words.
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
    """One guess per cell of the pyramid: several per word, each as wide as its cell at first."""

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
        """The cells themselves, each with the mark of its level."""
        del words  # the cells have seen them
        marked = [own + self.levels.weight[number] for number, own in enumerate(features)]
        return FlatProposals(torch.cat(marked), torch.cat([level.spans for level in cells.levels]))


class GatedUpdate(nn.Module):
    """Eqs. 18-19: a GRU cell decides what of the old query stays."""

    def __init__(self, dim: int, *, norm: bool) -> None:
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.norm = nn.LayerNorm(dim) if norm else None

    def forward(self, old: Tensor, seen: Tensor) -> Tensor:
        """The new query."""
        new: Tensor = self.cell(seen.flatten(0, 1), old.flatten(0, 1)).view_as(old)
        return new if self.norm is None else self.norm(new)


class FeedForwardUpdate(nn.Module):
    """The transformer's way: residual and norm, and a feed-forward net if it has a size."""

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
    """One round: proposals look at each other, then move, change, and are named anew.

    Queries are told what they are taken for by an embedding of labels (eq. 11), which starts at
    a standard deviation of `category_std`; with None they are not.
    """

    def __init__(
        self,
        *,
        attention: SpatialAttention,
        update: nn.Module,
        dim: int,
        labels: int,
        category_std: float | None,
        move: bool,
        relabel: bool,
    ) -> None:
        super().__init__()
        self.attention, self.update = attention, update
        self.categories = None if category_std is None else nn.Parameter(torch.empty(labels, dim))
        self.label_change = mlp(dim, labels) if relabel else None
        self.move = move
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
        if self.move:
            soft_spans = attended.soft_spans
        return Proposals(queries, soft_spans, logits, mask)
