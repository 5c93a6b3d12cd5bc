"""Vectors of spans in rows, by look-ups in tables that are made once per sentence."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from spandet.spans.flat import FlatSpans
from spandet.spans.pooling import RangeMaximum


def at_words(
    features: Float[Tensor, "batch word dim"], index: Int[Tensor, "batch span"]
) -> Float[Tensor, "batch span dim"]:
    """The vector of one word for each span."""
    rows = torch.arange(len(features), device=features.device)[:, None]
    return features[rows, index]


def in_one_list(
    spans: Int[Tensor, "batch span 2"], mask: Bool[Tensor, "batch span"] | None = None
) -> FlatSpans:
    """Spans in rows, one row after another; with a mask, only the real ones."""
    rows = torch.arange(len(spans), device=spans.device)
    flat = FlatSpans(rows.repeat_interleave(spans.shape[1]), spans.flatten(0, 1))
    return flat if mask is None else flat.where(mask.flatten())


def distinct(parts: Sequence[FlatSpans]) -> FlatSpans:
    """Every span of every sentence once, in order."""
    starts, ends = torch.cat([part.spans for part in parts]).unbind(dim=1)
    size = 1 + int(ends.max()) if len(ends) else 1
    sentence = torch.cat([part.sentence for part in parts])
    keys: Tensor = torch.unique((sentence * size + starts) * size + ends)
    spans = torch.stack([keys // size % size, keys % size], dim=1)
    return FlatSpans(keys // size // size, spans)


class RangeMean:
    """Means of word vectors over any span, from running sums: two look-ups each."""

    def __init__(self, features: Float[Tensor, "batch word dim"]) -> None:
        self._sums = F.pad(features.cumsum(dim=1), (0, 0, 1, 0))  # batch word+1 dim

    def inside(self, spans: Int[Tensor, "batch span 2"]) -> Float[Tensor, "batch span dim"]:
        """The mean over the words of each span."""
        starts, ends = spans.unbind(dim=-1)
        total = at_words(self._sums, ends) - at_words(self._sums, starts)
        return total / (ends - starts).clamp(min=1)[..., None]


class RowMaximum:
    """Maxima of word vectors over any span."""

    def __init__(self, features: Float[Tensor, "batch word dim"]) -> None:
        self._table = RangeMaximum(features, features.shape[1])

    def inside(self, spans: Int[Tensor, "batch span 2"]) -> Float[Tensor, "batch span dim"]:
        """The maximum over the words of each span."""
        return self._table.inside(in_one_list(spans)).view(*spans.shape[:2], -1)
