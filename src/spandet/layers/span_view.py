"""The words of a batch as span heads look at them: inside a span, and at its boundaries."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from spandet.layers.span_head import SpanHead
from spandet.spans.flat import FlatSpans
from spandet.spans.pooling import RangeMaximum
from spandet.tensors import WordFeatures


class SpanView:
    """The words of a batch as span heads look at them."""

    def __init__(self, words: WordFeatures, outside: Tensor | None) -> None:
        flat = words.features.flatten(0, 1)
        self.words = flat if outside is None else torch.cat([flat, outside])
        self.lengths: Int[Tensor, " batch"] = words.lengths
        self._outside = None if outside is None else len(flat)
        self._row = words.mask.shape[1]
        self._maximum = RangeMaximum(words.features, max(self._row, 1))
        self._sentence = words.sentence
        self._pooled: tuple[FlatSpans, Tensor] | None = None

    def inner(
        self, head: SpanHead, spans: FlatSpans, whole: Float[Tensor, "span dim"] | None = None
    ) -> Float[Tensor, "span out"]:
        """A head that looks at the first and the last word of a span.

        Args:
            head: Scores spans.
            spans: Which ones.
            whole: Shown to the head instead of the sentence's vector.
        """
        base = spans.sentence * self._row
        last = torch.maximum(spans.ends - 1, spans.starts)  # an empty span is the word at its place
        return self._apply(head, spans, base + spans.starts, base + last, whole)

    def outer(self, head: SpanHead, spans: FlatSpans) -> Float[Tensor, "span out"]:
        """A head that looks at the words just before and just after a span."""
        base, last = spans.sentence * self._row, self.lengths[spans.sentence] - 1
        left = base + (spans.starts - 1).clamp(min=0)
        right = base + torch.minimum(spans.ends, last)
        if self._outside is not None:
            left = torch.where(spans.starts > 0, left, self._outside)
            right = torch.where(spans.ends <= last, right, self._outside + 1)
        return self._apply(head, spans, left, right)

    def _apply(
        self,
        head: SpanHead,
        spans: FlatSpans,
        left: Tensor,
        right: Tensor,
        whole: Tensor | None = None,
    ) -> Tensor:
        if whole is None and head.whole is not None and self._sentence is not None:
            whole = self._sentence[spans.sentence]
        scores: Tensor = head(self._inside(spans), self.words, left, right, whole)
        return scores

    def _inside(self, spans: FlatSpans) -> Tensor:
        """The maximum over each span, looked up once for heads that look at the same spans."""
        if self._pooled is None or self._pooled[0] is not spans:
            self._pooled = spans, self._maximum.inside(spans)
        return self._pooled[1]
