"""Sections 4.2 and 4.3: boundary pointers, the boundary loss, and scores from pointers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.detectors.boundary_diffusion.settings import PointerKind, PointerLoss
from spandet.detectors.boundary_diffusion.span_encoder import WordDistances
from spandet.layers.dropout import Dropout
from spandet.tensors import GoldSpans, Loss

_PUBLISHED = ("mlp", "perceptron")


@dataclass(frozen=True)
class Pointers:
    """Logits of each word as the first and as the last of a slot's entity; lowest for padding."""

    first_logits: Float[Tensor, "batch span word"]
    last_logits: Float[Tensor, "batch span word"]

    def ordered(self) -> Int[Tensor, "batch span 2"]:
        """The most probable pair of boundaries in which the last word is not before the first."""
        last = self.last_logits.log_softmax(dim=-1)
        # The best last word from each word on, and then the best first word.
        best, place = last.flip(-1).cummax(dim=-1)
        best, place = best.flip(-1), last.shape[-1] - 1 - place.flip(-1)
        first = (self.first_logits.log_softmax(dim=-1) + best).argmax(dim=-1, keepdim=True)
        return torch.cat([first, place.gather(-1, first) + 1], dim=-1)

    def independent(self) -> Int[Tensor, "batch span 2"]:
        """Section 4.3, candidates: argmax P^l and argmax P^r; spans may be inverted."""
        return torch.stack([self.first_logits.argmax(-1), self.last_logits.argmax(-1) + 1], dim=-1)

    def probs(self, *, exclusive: bool) -> tuple[Tensor, Tensor]:
        """P^l and P^r: of each word by itself (sigmoid, the paper), or of one word (softmax)."""
        if exclusive:
            return self.first_logits.softmax(dim=-1), self.last_logits.softmax(dim=-1)
        return self.first_logits.sigmoid(), self.last_logits.sigmoid()


class BoundaryPointers(nn.Module):
    """Section 4.2, boundary pointers: logits of P^l and P^r, from slots and words.

    For each boundary δ, with words H_S, slots H̄_X, and matrices and vectors of δ:

    - mlp (paper): v · ReLU(W H_SX + b) + c with H_SX = W_S H_S + W_X H̄_X: a perceptron of two
      layers on the fusion of words and slots.
    - perceptron (released code): v · ReLU(W_S H_S + W_X H̄_X + b) + c. The same functions: W is
      merged into W_S and W_X.
    - additive: perceptron without c, and with dropout on the slots.
    - bilinear: the scaled dot product of W_S H_S + b and W_X H̄_X + b'.

    With a reach, a learned logit of the distance between word and boundary is added.
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
        self.pairwise = published
        """Slots × words × dim numbers per call, and no dropout."""
        self.distance = nn.Linear(dim, 2 * (2 * reach + 1)) if reach else None
        self.dropout = Dropout(0.0 if published else dropout)

    def read(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word twice"]:
        """Map the words, once for all slots.

        The perceptron's first layer is linear up to its ReLU, so words and slots are mapped by it
        separately and not once per pair; its bias is added to the words.
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
        distances: WordDistances,
        mask: Bool[Tensor, "batch word"],
    ) -> Pointers:
        """Logits of all words for all slots."""
        slots = self.dropout(slots)
        queries = self._queries(slots)
        logits = [
            self._compare(number, query, word)
            for number, (query, word) in enumerate(
                zip(queries, words.chunk(2, dim=-1), strict=True)
            )
        ]
        if self.distance is not None:
            by_distance = self.distance(slots).chunk(2, dim=-1)
            for number, distance in enumerate((distances.first, distances.last)):
                logits[number] = logits[number] + by_distance[number].gather(-1, distance)
        padding = ~mask[:, None]
        # Not −inf: a loss over all words must stay finite.
        lowest = torch.finfo(logits[0].dtype).min / 4
        return Pointers(*(own.masked_fill(padding, lowest) for own in logits))

    def _queries(self, slots: Float[Tensor, "batch span dim"]) -> tuple[Tensor, ...]:
        """The slots, mapped for each pointer."""
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
        else:  # needs memory for slots × words × dim
            scores = F.relu(slots[:, :, None] + words[:, None]) @ self.out[number]
        return scores if self.out_bias is None else scores + self.out_bias[number]


def boundary_loss(
    layers: Sequence[Pointers],
    targets: Int[Tensor, "batch span"],
    gold: GoldSpans,
    kind: PointerLoss,
    *,
    slots: Int[Tensor, ""] | None = None,
) -> Loss:
    """Section 4.2, training objective: the terms δ = l, r, for slots with an entity.

    Args:
        layers: Pointers after each layer; the loss is averaged over them.
        targets: Index of each slot's entity; -1 for none.
        gold: The entities.
        kind: Loss of a pointer.
        slots: Divisor of the sum; None: the number of slots with an entity.
    """
    sentence, slot = (targets >= 0).nonzero(as_tuple=True)
    spans = gold.spans[sentence, targets[sentence, slot]]
    parts = [
        _pointer_loss(logits[sentence, slot], right, kind)
        for layer in layers
        for logits, right in (
            (layer.first_logits, spans[:, 0]),
            (layer.last_logits, spans[:, 1] - 1),
        )
    ]
    total = torch.stack(parts).sum() / len(layers)
    return Loss.from_sum(total, len(slot) if slots is None else slots)


def with_entity(
    targets: Int[Tensor, "batch span"],
) -> tuple[Int[Tensor, "batch chosen"], Int[Tensor, "batch chosen"]]:
    """Indices of the slots with an entity, padded with others, and the targets of all these."""
    most = max(1, int((targets >= 0).sum(dim=1).max()))
    chosen = (targets < 0).byte().argsort(dim=1, stable=True)[:, :most]
    return chosen, targets.gather(1, chosen)


def _pointer_loss(
    logits: Float[Tensor, "span word"], right: Int[Tensor, " span"], kind: PointerLoss
) -> Float[Tensor, ""]:
    """-log P of the right word, summed over slots.

    nll: P is a softmax over words. likelihood: P is a sigmoid, as printed in the paper; P = 1 for
    every word minimises it. bce: likelihood, and -log(1 - P) of all other words.
    """
    if kind == "nll":
        return F.cross_entropy(logits, right, reduction="sum")
    if kind == "likelihood":
        return -F.logsigmoid(logits.gather(1, right[:, None])).sum()
    target = F.one_hot(right, logits.shape[1]).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, target, reduction="sum")


def chosen_probs(
    pointers: Pointers, spans: Int[Tensor, "batch span 2"], kind: PointerLoss
) -> Float[Tensor, "batch span 2"]:
    """P^l and P^r of the first and the last word of the given spans."""
    first, last = pointers.probs(exclusive=kind == "nll")
    places = (spans[..., :1], spans[..., 1:] - 1)
    return torch.cat([first.gather(-1, places[0]), last.gather(-1, places[1])], dim=-1)


def with_pointers(
    label_probs: Float[Tensor, "batch span label"], pointer_probs: Float[Tensor, "batch span 2"]
) -> Float[Tensor, "batch span label"]:
    """Section 4.3, filtering: label probabilities in which the best label has q / 3.

    q = P^l + P^r + P^c, so that the paper's filter q > φ is a threshold of φ / 3. The other labels
    share the rest in the same proportions. Slots with "no entity" as best label are kept.
    """
    best, label = label_probs.max(dim=-1, keepdim=True)
    score = (best + pointer_probs.sum(dim=-1, keepdim=True)) / 3
    shared = label_probs * (1 - score) / (1 - best).clamp(min=torch.finfo(best.dtype).tiny)
    scored = shared.scatter(-1, label, score)
    scored[..., 0] += 1 - scored.sum(dim=-1)  # where the other labels had probability 0
    return torch.where(label > 0, scored, label_probs)
