"""Where does an entity begin and end? Two pointers over the words, for each of many slots."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.detectors.boundary_diffusion.slot_layer import Near
from spandet.layers.dropout import Dropout

PointerKind = Literal["bilinear", "additive", "mlp", "perceptron"]
_PUBLISHED = ("mlp", "perceptron")


@dataclass(frozen=True)
class Pointers:
    """Scores of each word as the first and as the last of a slot's entity; −inf for padding."""

    first_logits: Float[Tensor, "batch span word"]
    last_logits: Float[Tensor, "batch span word"]

    def ordered(self) -> Int[Tensor, "batch span 2"]:
        """The best pair of boundaries, as spans: the first word never comes after the last."""
        last = self.last_logits.log_softmax(dim=-1)
        # The best last word from each word on, and then the best word to begin with.
        best, place = last.flip(-1).cummax(dim=-1)
        best, place = best.flip(-1), last.shape[-1] - 1 - place.flip(-1)
        first = (self.first_logits.log_softmax(dim=-1) + best).argmax(dim=-1, keepdim=True)
        return torch.cat([first, place.gather(-1, first) + 1], dim=-1)

    def independent(self) -> Int[Tensor, "batch span 2"]:
        """The best word for each boundary (section 4.3); the first may come after the last."""
        return torch.stack([self.first_logits.argmax(-1), self.last_logits.argmax(-1) + 1], dim=-1)

    def probs(self, *, exclusive: bool) -> tuple[Tensor, Tensor]:
        """P^δ (section 4.2): of each word by itself (sigmoid), or of exactly one word (softmax)."""
        if exclusive:
            return self.first_logits.softmax(dim=-1), self.last_logits.softmax(dim=-1)
        return self.first_logits.sigmoid(), self.last_logits.sigmoid()


class BoundaryPointers(nn.Module):
    """Compares slots with words, and, with a reach, weighs the words' distance from the slot.

    For each boundary δ, with H_S the words, H̄ the slots and the matrices and vectors of δ:

    - mlp (paper, section 4.2): v · ReLU(W (W_S H_S + W_X H̄) + b) + c, where the inner sum is the
      fusion of slots and words, and the rest a perceptron of two layers.
    - perceptron (released code): v · ReLU(W_S H_S + W_X H̄ + b) + c. The same functions: W is merged
      into W_S and W_X.
    - additive: the same without c, and with dropout on the slots.
    - bilinear: a scaled product of W_S H_S + b and W_X H̄ + b'.
    """

    def __init__(self, *, dim: int, kind: PointerKind, reach: int, dropout: float) -> None:
        super().__init__()
        fuses, published = kind == "mlp", kind in _PUBLISHED
        self.word, self.slot = (nn.Linear(dim, 2 * dim, bias=not fuses) for _ in range(2))
        self.hidden = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2)) if fuses else None
        self.out = nn.Parameter(torch.empty(2, dim)) if kind != "bilinear" else None
        if self.out is not None:
            nn.init.normal_(self.out, std=dim**-0.5)
        self.out_bias = nn.Parameter(torch.zeros(2)) if published else None
        self.distance = nn.Linear(dim, 2 * (2 * reach + 1)) if reach else None
        self.dropout = Dropout(0.0 if published else dropout)

    def read(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word twice"]:
        """The words as the pointers see them.

        The perceptron's first layer is linear up to its ReLU, so words and slots go through it
        apart, once each, and not once for every pair; its bias comes with the words.
        """
        seen: Tensor = self.word(words)
        if self.hidden is None:
            return seen
        parts = zip(self.hidden, seen.chunk(2, dim=-1), strict=True)
        return torch.cat([layer(part) for layer, part in parts], dim=-1)

    def forward(
        self,
        slots: Float[Tensor, "batch span dim"],
        words: Float[Tensor, "batch word twice"],
        places: Near,
        mask: Bool[Tensor, "batch word"],
    ) -> Pointers:
        """Scores of all words for all slots."""
        slots = self.dropout(slots)
        asked = self._asked(slots)
        logits = [
            self._compare(number, query, word)
            for number, (query, word) in enumerate(zip(asked, words.chunk(2, dim=-1), strict=True))
        ]
        if self.distance is not None:
            far = self.distance(slots).chunk(2, dim=-1)
            for number, place in enumerate((places.first, places.last)):
                logits[number] = logits[number] + far[number].gather(-1, place)
        hidden = ~mask[:, None]
        # Not −inf: a loss over all words must stay finite.
        least = torch.finfo(logits[0].dtype).min / 4
        return Pointers(*(own.masked_fill(hidden, least) for own in logits))

    def _asked(self, slots: Float[Tensor, "batch span dim"]) -> tuple[Tensor, ...]:
        """The slots as each pointer sees them."""
        parts: tuple[Tensor, ...] = self.slot(slots).chunk(2, dim=-1)
        if self.hidden is None:
            return parts
        layers = cast("Iterable[nn.Linear]", self.hidden)
        return tuple(
            F.linear(part, layer.weight) for layer, part in zip(layers, parts, strict=True)
        )

    def _compare(
        self,
        number: int,
        slots: Float[Tensor, "batch span dim"],
        words: Float[Tensor, "batch word dim"],
    ) -> Float[Tensor, "batch span word"]:
        scores: Tensor
        if self.out is None:
            scores = slots @ words.transpose(1, 2) / slots.shape[-1] ** 0.5
        else:  # the paper's perceptron on every pair costs slots × words × dim: no default
            scores = F.relu(slots[:, :, None] + words[:, None]) @ self.out[number]
        return scores if self.out_bias is None else scores + self.out_bias[number]
