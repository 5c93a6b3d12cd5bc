"""Section 4.2 and appendix C: the layers of the span encoder, and embeddings of timesteps."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.dropout import Dropout

_LONGEST = 10_000.0


@dataclass(frozen=True)
class Keys:
    """Keys and values of an attention, computed once for all its queries."""

    keys: Float[Tensor, "batch head item part"]
    values: Float[Tensor, "batch head item part"]


class Attention(nn.Module):
    """Multi-head attention; keys and values can be computed beforehand."""

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ask, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.heads = heads
        self.dropout = dropout

    def read(
        self, keys: Float[Tensor, "batch item dim"], values: Float[Tensor, "batch item dim"]
    ) -> Keys:
        """Compute keys and values."""
        return Keys(self._split(self.key(keys)), self._split(self.value(values)))

    def forward(
        self,
        queries: Float[Tensor, "batch span dim"],
        keys: Keys,
        bias: Float[Tensor, "batch #head #span item"],
    ) -> Float[Tensor, "batch span dim"]:
        """Attend; `bias` is added to the scores, and is −inf for items that are masked."""
        asked = self._split(self.ask(queries))
        seen = F.scaled_dot_product_attention(
            asked,
            keys.keys,
            keys.values,
            attn_mask=bias.to(asked.dtype),
            dropout_p=self.dropout if self.training else 0.0,
        )
        joined: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return joined

    def _split(self, items: Float[Tensor, "batch item dim"]) -> Tensor:
        return items.view(*items.shape[:2], self.heads, -1).transpose(1, 2)


def padding_bias(mask: Bool[Tensor, "batch item"]) -> Float[Tensor, "batch 1 1 item"]:
    """Attention bias that masks padding; a row of padding only keeps its first item."""
    some = mask.clone()
    some[:, 0] |= ~mask.any(dim=1)
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~some, -torch.inf)[:, None, None]


@dataclass(frozen=True)
class WordDistances:
    """Distance of each word from both boundaries of each slot's span, clamped to ±reach.

    Shifted by reach, so that all values can index a table.
    """

    first: Int[Tensor, "batch span word"]
    last: Int[Tensor, "batch span word"]


def word_distances(
    spans: Int[Tensor, "batch span 2"], words: int | torch.SymInt, reach: int
) -> WordDistances:
    """Distances of all words; the word at the boundary has the value `reach`."""
    position = torch.arange(words, device=spans.device)  # type: ignore[arg-type]
    first, end = spans[..., None].unbind(dim=2)
    from_first = (position - first).clamp(-reach, reach) + reach
    return WordDistances(from_first, (position - end + 1).clamp(-reach, reach) + reach)


class SlotLayer(nn.Module):
    """Section 4.2, span encoder: self-attention, cross-attention, feed-forward (appendix C).

    Each of the three has a residual connection and is followed by a layer norm.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        hidden: int,
        dropout: float,
        attends: tuple[bool, bool],
        reach: int,
    ) -> None:
        """Build a layer; `attends`: with self-attention, with cross-attention."""
        super().__init__()

        def attention(wanted: bool) -> Attention | None:
            return Attention(dim=dim, heads=heads, dropout=dropout) if wanted else None

        self.slots, self.words = (attention(wanted) for wanted in attends)
        self.slots_norm, self.words_norm = (
            nn.LayerNorm(dim) if wanted else None for wanted in attends
        )
        self.places = (
            nn.Parameter(torch.zeros(2, 2 * reach + 1, heads)) if reach and attends[1] else None
        )
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, dim)
        )
        self.net_norm = nn.LayerNorm(dim)
        self.dropout = Dropout(dropout)

    def read(self, words: Float[Tensor, "batch word dim"]) -> Keys | None:
        """Keys and values of the words for cross-attention; None without it."""
        return self.words.read(words, words) if self.words is not None else None

    def forward(
        self,
        slots: Float[Tensor, "batch span dim"],
        codes: Float[Tensor, "own dim"] | None,
        others: Bool[Tensor, "group own"],
        words: Keys | None,
        distances: WordDistances,
        padding: Float[Tensor, "batch 1 1 word"],
    ) -> Float[Tensor, "batch span dim"]:
        """Updated vectors of the slots.

        Args:
            slots: Vectors of the slots.
            codes: Embeddings of the slot numbers, added to queries and to keys of slots.
            others: Mask of the slots in groups; only slots of one group attend to each other.
            words: From `read`.
            distances: Distances of words from slots.
            padding: Attention bias that masks padding words.
        """
        if self.slots is not None and self.slots_norm is not None:
            groups = slots.reshape(*others.shape, -1)
            asking = groups if codes is None else groups + codes
            keys = self.slots.read(asking, groups)
            seen = self.slots(asking, keys, padding_bias(others)).reshape(slots.shape)
            slots = self.slots_norm(slots + self.dropout(seen))
        if self.words is not None and self.words_norm is not None and words is not None:
            asking = slots
            if codes is not None:
                asking = (slots.reshape(*others.shape, -1) + codes).reshape(slots.shape)
            seen = self.words(asking, words, padding + self._distance_bias(distances))
            slots = self.words_norm(slots + self.dropout(seen))
        updated: Tensor = self.net_norm(slots + self.dropout(self.net(slots)))
        return updated

    def _distance_bias(
        self, distances: WordDistances
    ) -> Float[Tensor, "batch head span word"] | float:
        if self.places is None:
            return 0.0
        of_first = F.embedding(distances.first, self.places[0])
        of_last = F.embedding(distances.last, self.places[1])
        return (of_first + of_last).permute(0, 3, 1, 2)


def sinusoids(
    numbers: Int[Tensor, "*shape"], dim: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape dim"]:
    """Sinusoidal embedding: sines, then cosines; an odd dimension ends with a zero."""
    half = dim // 2
    steps = torch.arange(half, device=numbers.device).to(dtype)
    rates = torch.exp(-math.log(_LONGEST) / max(half - 1, 1) * steps)
    angles = numbers[..., None] * rates
    waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return nn.functional.pad(waves, (0, dim - 2 * half))


def alternating_sinusoids(
    numbers: Int[Tensor, "*shape"], dim: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape dim"]:
    """Sines and cosines in turn, of n / 10000^(2i / dim) (Vaswani et al., 2017, section 3.5)."""
    steps = torch.arange((dim + 1) // 2, device=numbers.device).to(dtype)
    angles = numbers[..., None] * torch.exp(-math.log(_LONGEST) * 2 / dim * steps)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :dim]


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute sinusoids in: half precision is too coarse for large numbers."""
    return torch.promote_types(dtype, torch.float32)


class NumberEmbedding(nn.Module):
    """Sinusoidal embedding → Linear → GELU → Linear."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))

    def forward(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape dim"]:
        """A vector for each number."""
        dtype = next(self.net.parameters()).dtype
        embedded: Tensor = self.net(sinusoids(numbers, self.dim, at_least_single(dtype)).to(dtype))
        return embedded
