"""Which fragments are parts of one discontinuous entity, and which are entities by themselves?"""

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
_RARE = -4.0
"""Where training starts: nothing is linked, and every fragment is an entity by itself."""
_WIDEST = 32
"""Gaps with more words than this are equally wide."""


@dataclass(frozen=True)
class LinkScores:
    """What a linker says of the fragments of each sentence."""

    together_logits: Float[Tensor, "batch left right"]
    """By the fragment before the gap and the one after it; meaningless where there is no gap."""
    apart: Bool[Tensor, "batch left right"]
    """Is there a gap, with the left one before it and the right one after it?"""
    alone_logits: Float[Tensor, "batch span"]

    def links(self) -> Links:
        """Probabilities."""
        ordered = torch.where(self.apart, self.together_logits.sigmoid(), 0)
        return Links(ordered + ordered.transpose(1, 2), self.alone_logits.sigmoid())


class FragmentLinker(nn.Module):
    """A biaffine map of two fragments, with a weight for the gap between them."""

    def __init__(self, *, dim: int, dropout: float) -> None:
        super().__init__()
        self.sizes = (_INNER, _INNER, 1, 1, 1)
        """The vectors of a fragment before and after a gap, a score as either, and one alone."""
        self.head = SpanHead(dim=dim, out=sum(self.sizes), dropout=dropout)
        self.widths = nn.Parameter(torch.full((_WIDEST,), _RARE))
        self.between, self.gap = nn.Linear(dim, _GAP), nn.Linear(_GAP, 1, bias=False)
        nn.init.zeros_(self.gap.weight)
        with torch.no_grad():
            before, _, *scores = self.head.out.weight.split(self.sizes)
            for rows in (before, *scores):  # a product needs only one factor to be 0
                rows.zero_()
            self.head.out.bias[-1] = -_RARE

    def forward(self, words: WordFeatures, spans: Int[Tensor, "batch span 2"]) -> LinkScores:
        """Scores of all pairs and of each fragment."""
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
        seen = seen.to(logits.dtype)  # arithmetic may be mixed
        logits = logits.index_put((sentence, left, right), seen, accumulate=True)
        return LinkScores(logits, apart, alone.squeeze(-1))

    def losses(self, words: WordFeatures, gold: GoldSpans) -> Losses:
        """Cross-entropies, for the pairs that could be linked and for each fragment.

        Only fragments with the same label could be; decoding links no others.
        """
        scores: LinkScores = self(words, gold.spans)
        links = gold.links or _whole(gold)
        real = gold.mask[:, :, None] & gold.mask[:, None]
        pairs = scores.apart & real & (gold.labels[:, :, None] == gold.labels[:, None])
        return {
            "link": _loss(scores.together_logits, links.together, pairs),
            "alone": _loss(scores.alone_logits, links.alone, gold.mask),
        }


def _whole(gold: GoldSpans) -> Links:
    """Nothing belongs together."""
    alone = torch.ones_like(gold.mask, dtype=torch.get_default_dtype())
    return Links(alone.new_zeros(*alone.shape, alone.shape[1]), alone)


def _loss(logits: Tensor, targets: Tensor, real: Tensor) -> Loss:
    wrong = F.binary_cross_entropy_with_logits(
        logits[real], targets[real].to(logits.dtype), reduction="sum"
    )
    return Loss.from_sum(wrong, real.sum())
