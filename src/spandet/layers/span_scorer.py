"""A cheap look at all spans of a sentence: how likely is each of them an entity?"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.dropout import Dropout
from spandet.tensors import GoldSpans, Loss, WordFeatures

_RARE = -4.0
"""Where training starts: nearly no span is an entity."""
_WIDEST = 32
"""Spans with more words than this are equally wide."""


@dataclass(frozen=True)
class ProposalScores:
    """Scores by first and last word; −inf where there is no such span."""

    logits: Float[Tensor, "batch first last"]

    def best(self, count: int) -> tuple[Int[Tensor, "batch span 2"], Float[Tensor, "batch span"]]:
        """The `count` most likely spans, best first, with probabilities.

        A sentence with fewer spans has them again, from the best on.
        """
        flat, words = self.logits.detach().flatten(1), self.logits.shape[1]
        top = flat.topk(min(count, flat.shape[1]), dim=1)
        own = torch.isfinite(top.values).sum(dim=1, keepdim=True).clamp(min=1)
        chosen = torch.arange(count, device=flat.device) % own
        index, scores = top.indices.gather(1, chosen), top.values.gather(1, chosen)
        spans = torch.stack([index // words, index % words + 1], dim=-1)
        return spans, scores.sigmoid()

    def with_gold_first(self, gold: GoldSpans) -> "ProposalScores":
        """The same with the entities before all others."""
        highest = torch.finfo(self.logits.dtype).max
        return ProposalScores(self.logits.detach().masked_fill(self._right(gold), highest))

    def loss(self, gold: GoldSpans) -> Loss:
        """How wrong: a sum over spans, counted per word."""
        real = torch.isfinite(self.logits)
        target = self._right(gold).to(self.logits.dtype)
        wrong = F.binary_cross_entropy_with_logits(
            self.logits.masked_fill(~real, 0), target, reduction="none"
        )
        words = real.diagonal(dim1=1, dim2=2).sum()
        return Loss.from_sum((wrong * real).sum(), words)

    def _right(self, gold: GoldSpans) -> Bool[Tensor, "batch first last"]:
        """Which of them are entities?"""
        right = torch.zeros_like(self.logits, dtype=torch.bool)
        sentence, place = gold.mask.nonzero(as_tuple=True)
        starts, ends = gold.spans[sentence, place].unbind(dim=-1)
        right[sentence, starts, ends - 1] = True
        return right


class SpanScorer(nn.Module):
    """A biaffine map of the first and the last word, and a weight for the width."""

    def __init__(self, *, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(dim, inner), nn.Linear(dim, inner)
        self.alone = nn.Linear(dim, 2)
        self.widths = nn.Parameter(torch.zeros(_WIDEST))
        self.dropout = Dropout(dropout)
        nn.init.constant_(self.alone.bias, _RARE / 2)

    def forward(self, words: WordFeatures) -> ProposalScores:
        """Scores of all spans."""
        seen = self.dropout(words.features)
        first, last = F.gelu(self.first(seen)), F.gelu(self.last(seen))
        of_first, of_last = self.alone(seen).unbind(dim=-1)
        logits = first @ last.transpose(1, 2) / first.shape[-1] ** 0.5
        place = torch.arange(seen.shape[1], device=seen.device)
        width = self.widths[(place - place[:, None]).clamp(0, _WIDEST - 1)]
        logits = logits + of_first[:, :, None] + of_last[:, None] + width
        return ProposalScores(logits.masked_fill(~_real(words.mask), -torch.inf))


def _real(mask: Bool[Tensor, "batch word"]) -> Bool[Tensor, "batch first last"]:
    return (mask[:, :, None] & mask[:, None]).triu()
