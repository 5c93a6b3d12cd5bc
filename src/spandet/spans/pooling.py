"""Maxima over spans in O(words · log words): never a span × word mask."""

import torch
from jaxtyping import Float
from torch import Tensor

from spandet.spans.flat import FlatSpans


class RangeMaximum:
    """Element-wise maxima of word vectors over any span, from windows of 1, 2, 4, … words.

    A span is covered by two windows of the largest power of two that fits (they may overlap, which
    a maximum does not mind), so each query is two look-ups.
    """

    def __init__(self, features: Float[Tensor, "batch word dim"], longest: int) -> None:
        self._words = features.shape[1]
        levels = [features]
        width = 1
        while 2 * width <= min(longest, self._words):
            last = levels[-1]
            grown = torch.maximum(last[:, :-width], last[:, width:])
            # The tail holds no whole window of the new size; no query reaches it.
            levels.append(torch.cat([grown, last[:, -width:]], dim=1))
            width *= 2
        self._table = torch.stack(levels).flatten(0, 2)  # level·batch·word dim
        self._level_size = features.shape[0] * self._words
        self._levels = len(levels)

    def inside(self, spans: FlatSpans) -> Float[Tensor, "span dim"]:
        """The maximum over the words of each span."""
        lengths = spans.ends - spans.starts
        # frexp gives the exponent exactly, where a logarithm could round 8 down to 2.999…
        level = (torch.frexp(lengths.double()).exponent - 1).clamp(0, self._levels - 1).long()
        base = level * self._level_size + spans.sentence * self._words
        right = spans.ends - (1 << level)
        return torch.maximum(self._table[base + spans.starts], self._table[base + right])
