"""Which gold entity does a span go with?"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from spandet.spans.flat import FlatSpans
from spandet.spans.overlap import iou
from spandet.tensors import GoldSpans


@dataclass(frozen=True)
class Match:
    """For every span the gold entity that it overlaps most.

    One that overlaps none has an overlap of 0, the empty span 0:0 and label 0: whatever stands in
    the padding of a batch plays no part.
    """

    iou: Float[Tensor, " span"]
    spans: Int[Tensor, "span 2"]
    labels: Int[Tensor, " span"]

    def where(self, chosen: Tensor) -> "Match":
        """Only the chosen ones."""
        return Match(self.iou[chosen], self.spans[chosen], self.labels[chosen])


def pairwise_iou(spans: FlatSpans, gold: GoldSpans) -> Float[Tensor, "span gold"]:
    """Overlap of each span with the gold entities of its sentence; 0 for padding."""
    shared = iou(spans.spans[:, None], gold.spans[spans.sentence])
    return shared * gold.mask[spans.sentence]


def best_gold(spans: FlatSpans, gold: GoldSpans) -> Match:
    """Match each span to the entity with the largest overlap; among equals to the first."""
    if gold.spans.shape[1] == 0:
        nothing = torch.zeros_like(spans.sentence)
        return Match(nothing.float(), torch.zeros_like(spans.spans), nothing)
    best, index = pairwise_iou(spans, gold).max(dim=1)
    overlaps, place = best > 0, (spans.sentence, index)
    return Match(best, gold.spans[place] * overlaps[:, None], gold.labels[place] * overlaps)
