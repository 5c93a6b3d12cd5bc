"""A layer of the span encoder: self-attention over slots, cross-attention to words, feed-forward.

Section 4.2 and appendix C of DiffusionNER (Shen et al., ACL 2023).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.dropout import Dropout


@dataclass(frozen=True)
class Keys:
    """What attention looks at, mapped once however often it is looked at."""

    keys: Float[Tensor, "batch head item part"]
    values: Float[Tensor, "batch head item part"]


class Attention(nn.Module):
    """Attention with several heads; what is looked at can be mapped beforehand."""

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ask, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.heads = heads
        self.dropout = dropout

    def read(
        self, keys: Float[Tensor, "batch item dim"], values: Float[Tensor, "batch item dim"]
    ) -> Keys:
        """Map what will be looked at."""
        return Keys(self._split(self.key(keys)), self._split(self.value(values)))

    def forward(
        self,
        queries: Float[Tensor, "batch span dim"],
        keys: Keys,
        bias: Float[Tensor, "batch #head #span item"],
    ) -> Float[Tensor, "batch span dim"]:
        """What each query sees; `bias` is −inf for items that it must not see."""
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


def hidden_from(mask: Bool[Tensor, "batch item"]) -> Float[Tensor, "batch 1 1 item"]:
    """The bias that hides padding. Where there is nothing but padding, its first item shows."""
    some = mask.clone()
    some[:, 0] |= ~mask.any(dim=1)
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~some, -torch.inf)[:, None, None]


@dataclass(frozen=True)
class Near:
    """How far each word is from the two ends of each slot's span, cut off at `reach`; from 0 on."""

    first: Int[Tensor, "batch span word"]
    last: Int[Tensor, "batch span word"]


def near(spans: Int[Tensor, "batch span 2"], words: int | torch.SymInt, reach: int) -> Near:
    """Distances of all words: `reach` is the word at the boundary itself."""
    position = torch.arange(words, device=spans.device)  # type: ignore[arg-type]
    first, end = spans[..., None].unbind(dim=2)
    ahead = (position - first).clamp(-reach, reach) + reach
    return Near(ahead, (position - end + 1).clamp(-reach, reach) + reach)


class SlotLayer(nn.Module):
    """Self-attention, cross-attention and a feed-forward net, each with residual and norm."""

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
        """`attends`: to slots, to words. `reach`: words farther than this are equally far."""
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
        """The words as this layer looks at them."""
        return self.words.read(words, words) if self.words is not None else None

    def forward(
        self,
        slots: Float[Tensor, "batch span dim"],
        codes: Float[Tensor, "own dim"] | None,
        others: Bool[Tensor, "group own"],
        words: Keys | None,
        places: Near,
        padding: Float[Tensor, "batch 1 1 word"],
    ) -> Float[Tensor, "batch span dim"]:
        """Better vectors of slots.

        Args:
            slots: Their vectors.
            codes: What tells slots apart in attention.
            others: Slots that are real; those of one row see each other, and no others.
            words: From `read`.
            places: Where the words are, seen from the slots.
            padding: Hides words that are not real.
        """
        if self.slots is not None and self.slots_norm is not None:
            groups = slots.reshape(*others.shape, -1)
            asking = groups if codes is None else groups + codes
            keys = self.slots.read(asking, groups)
            seen = self.slots(asking, keys, hidden_from(others)).reshape(slots.shape)
            slots = self.slots_norm(slots + self.dropout(seen))
        if self.words is not None and self.words_norm is not None and words is not None:
            asking = slots
            if codes is not None:
                asking = (slots.reshape(*others.shape, -1) + codes).reshape(slots.shape)
            seen = self.words(asking, words, padding + self._bias(places))
            slots = self.words_norm(slots + self.dropout(seen))
        finished: Tensor = self.net_norm(slots + self.dropout(self.net(slots)))
        return finished

    def _bias(self, places: Near) -> Float[Tensor, "batch head span word"] | float:
        if self.places is None:
            return 0.0
        bias = F.embedding(places.first, self.places[0]) + F.embedding(places.last, self.places[1])
        return bias.permute(0, 3, 1, 2)
