"""Inputs of span heads: the pooled words of a span and the words at its boundaries."""

from jaxtyping import Float, Int
from torch import Tensor, maximum, minimum

from spandet.layers.span_head import SpanHead
from spandet.spans.flat import FlatSpans
from spandet.spans.pooling import RangeMaximum
from spandet.tensors import WordFeatures


class SpanView:
    """The words of a batch, prepared once for several span heads."""

    def __init__(self, words: WordFeatures) -> None:
        self.words = words.features.flatten(0, 1)
        self.lengths: Int[Tensor, " batch"] = words.lengths
        self._row = words.mask.shape[1]
        self._maximum = RangeMaximum(words.features, max(self._row, 1))
        self._sentence = words.sentence
        self._pooled: tuple[FlatSpans, Tensor] | None = None

    def inner(
        self, head: SpanHead, spans: FlatSpans, whole: Float[Tensor, "span dim"] | None = None
    ) -> Float[Tensor, "span out"]:
        """Apply a head to [pooled words; first word; last word] of each span.

        Args:
            head: The head.
            spans: The spans to score.
            whole: Input of the head in place of the sentence vector.
        """
        base = spans.sentence * self._row
        last = maximum(spans.ends - 1, spans.starts)  # an empty span is the word at its position
        return self._apply(head, spans, base + spans.starts, base + last, whole)

    def outer(self, head: SpanHead, spans: FlatSpans) -> Float[Tensor, "span out"]:
        """Apply a head to [pooled words; word before the span; word after it].

        At the edge of a sentence its first or last word takes the place of the missing word.
        """
        base, last = spans.sentence * self._row, self.lengths[spans.sentence] - 1
        left = base + (spans.starts - 1).clamp(min=0)
        right = base + minimum(spans.ends, last)
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
        """The maximum over each span, computed once for consecutive heads on the same spans."""
        if self._pooled is None or self._pooled[0] is not spans:
            self._pooled = spans, self._maximum.inside(spans)
        return self._pooled[1]
