"""Linker of fragments: which belong to one discontinuous entity, which are entities alone.

Not in the paper.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from spandet.layers.span_head import SpanHead
from spandet.layers.span_view import SpanView
from spandet.spans.flat import FlatSpans, from_rows
from spandet.spans.pooling import RangeMaximum
from spandet.tensors import GoldSpans, Links, Loss, Losses, WordFeatures

_INNER = 64
_GAP = 32
_FIRST_LOGIT = -4.0
"""Logit of a link at the start of training, and minus the logit of "entity alone"."""
_WIDEST = 32
"""Wider gaps share the weight of this width."""


@dataclass(frozen=True)
class LinkScores:
    """Logits of the pairs of fragments of each sentence, and of each fragment."""

    together_logits: Float[Tensor, "batch left right"]
    """Of the fragment before a gap and the one after it; not defined where there is no gap."""
    apart: Bool[Tensor, "batch left right"]
    """Mask of the pairs with a gap between the end of the left and the start of the right one."""
    alone_logits: Float[Tensor, "batch span"]

    def links(self) -> Links:
        """Probabilities, in both directions."""
        ordered = torch.where(self.apart, self.together_logits.sigmoid(), 0)
        return Links(ordered + ordered.transpose(1, 2), self.alone_logits.sigmoid())


class FragmentLinker(nn.Module):
    """Biaffine map of two fragments, with weights of the width and the words of their gap."""

    def __init__(self, *, dim: int, dropout: float) -> None:
        super().__init__()
        self.sizes = (_INNER, _INNER, 1, 1, 1)
        """Vectors of a fragment before and after a gap, its logits as either, its logit alone."""
        self.head = SpanHead(dim=dim, out=sum(self.sizes), dropout=dropout)
        self.widths = nn.Parameter(torch.full((_WIDEST,), _FIRST_LOGIT))
        self.between, self.gap = nn.Linear(dim, _GAP), nn.Linear(_GAP, 1, bias=False)
        nn.init.zeros_(self.gap.weight)
        with torch.no_grad():
            before, _, *scores = self.head.out.weight.split(self.sizes)
            for rows in (before, *scores):  # the product is 0 if one factor is
                rows.zero_()
            self.head.out.bias[-1] = -_FIRST_LOGIT

    def forward(self, words: WordFeatures, spans: Int[Tensor, "batch span 2"]) -> LinkScores:
        """Logits of all pairs and of each fragment."""
        flat = SpanView(words).inner(self.head, from_rows(spans))
        parts = flat.view(*spans.shape[:2], sum(self.sizes)).split(self.sizes, dim=-1)
        before, after, as_left, as_right, alone = parts
        ends, starts = torch.broadcast_tensors(spans[:, :, None, 1], spans[:, None, :, 0])
        apart = ends < starts
        logits = before @ after.transpose(1, 2) / _INNER**0.5
        logits = logits + as_left + as_right.transpose(1, 2)
        logits = logits + self.widths[(starts - ends).clamp(0, _WIDEST - 1)]
        sentence, left, right = apart.nonzero(as_tuple=True)
        gaps = FlatSpans(sentence, torch.stack([ends[apart], starts[apart]], dim=1))
        inside = RangeMaximum(self.between(words.features), words.mask.shape[1]).inside(gaps)
        seen = self.gap(F.gelu(inside)).squeeze(-1)
        seen = seen.to(logits.dtype)  # in mixed precision
        logits = logits.index_put((sentence, left, right), seen, accumulate=True)
        return LinkScores(logits, apart, alone.squeeze(-1))

    def losses(self, words: WordFeatures, gold: GoldSpans) -> Losses:
        """Cross-entropy of the pairs with equal labels, and of each fragment.

        Decoding links no fragments with different labels.
        """
        scores: LinkScores = self(words, gold.spans)
        links = gold.links or _unlinked(gold)
        real = gold.mask[:, :, None] & gold.mask[:, None]
        pairs = scores.apart & real & (gold.labels[:, :, None] == gold.labels[:, None])
        return {
            "link": _loss(scores.together_logits, links.together, pairs),
            "alone": _loss(scores.alone_logits, links.alone, gold.mask),
        }


def _unlinked(gold: GoldSpans) -> Links:
    """Links of entities without gaps: each fragment is an entity alone."""
    alone = torch.ones_like(gold.mask, dtype=torch.get_default_dtype())
    return Links(alone.new_zeros(*alone.shape, alone.shape[1]), alone)


def _loss(logits: Tensor, targets: Tensor, real: Tensor) -> Loss:
    wrong = F.binary_cross_entropy_with_logits(
        logits[real], targets[real].to(logits.dtype), reduction="sum"
    )
    return Loss.from_sum(wrong, real.sum())
