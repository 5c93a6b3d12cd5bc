"""Biaffine scores of all spans of a sentence: the logit that a span is an entity."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.dropout import Dropout
from spandet.tensors import GoldSpans, Loss, WordFeatures

_FIRST_LOGIT = -4.0
"""Logit of all spans at the start of training: few spans are entities."""
_WIDEST = 32
"""Wider spans share the weight of this width."""


@dataclass(frozen=True)
class ProposalScores:
    """Logits of spans by first and last word; −inf for impossible spans."""

    logits: Float[Tensor, "batch first last"]

    def best(self, count: int) -> tuple[Int[Tensor, "batch span 2"], Float[Tensor, "batch span"]]:
        """The `count` spans with the highest scores, best first, with probabilities.

        A sentence with fewer spans repeats them from the first on.
        """
        flat, words = self.logits.detach().flatten(1), self.logits.shape[1]
        top = flat.topk(min(count, flat.shape[1]), dim=1)
        own = torch.isfinite(top.values).sum(dim=1, keepdim=True).clamp(min=1)
        chosen = torch.arange(count, device=flat.device) % own
        index, scores = top.indices.gather(1, chosen), top.values.gather(1, chosen)
        first = index // words
        spans = torch.stack([first, index - first * words + 1], dim=-1)
        return spans, scores.sigmoid()

    def with_gold_first(self, gold: GoldSpans) -> "ProposalScores":
        """Scores in which the gold entities are the highest."""
        highest = torch.finfo(self.logits.dtype).max
        return ProposalScores(self.logits.detach().masked_fill(self._is_gold(gold), highest))

    def loss(self, gold: GoldSpans) -> Loss:
        """Binary cross-entropy, summed over spans and divided by the number of words."""
        real = torch.isfinite(self.logits)
        target = self._is_gold(gold).to(self.logits.dtype)
        losses = F.binary_cross_entropy_with_logits(
            self.logits.masked_fill(~real, 0), target, reduction="none"
        )
        words = real.diagonal(dim1=1, dim2=2).sum()
        return Loss.from_sum((losses * real).sum(), words)

    def _is_gold(self, gold: GoldSpans) -> Bool[Tensor, "batch first last"]:
        """Mask of the spans that are gold entities."""
        is_gold = torch.zeros_like(self.logits, dtype=torch.bool)
        sentence, place = gold.mask.nonzero(as_tuple=True)
        starts, ends = gold.spans[sentence, place].unbind(dim=-1)
        is_gold[sentence, starts, ends - 1] = True
        return is_gold


class SpanScorer(nn.Module):
    """A biaffine map of the first and the last word, and a weight for the width."""

    def __init__(self, *, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(dim, inner), nn.Linear(dim, inner)
        self.alone = nn.Linear(dim, 2)
        self.widths = nn.Parameter(torch.zeros(_WIDEST))
        self.dropout = Dropout(dropout)
        nn.init.constant_(self.alone.bias, _FIRST_LOGIT / 2)

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
