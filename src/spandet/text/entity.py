"""Entities: labelled spans, contiguous or in fragments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from spandet.text.spans import CharSpan, WordSpan

SpanT = TypeVar("SpanT", CharSpan, WordSpan)


@dataclass(frozen=True, slots=True)
class Entity(Generic[SpanT]):
    """A labelled span. Entities may nest, cross, and share a span under several labels."""

    span: SpanT
    """From the first to the last unit, gaps included."""
    label: str
    score: float | None = None
    """Score of a prediction, 0 to 1; None for a gold annotation."""
    fragments: tuple[SpanT, ...] = ()
    """The fragments of a discontinuous entity from left to right; empty if contiguous."""

    def __post_init__(self) -> None:
        if self.fragments:
            self._check_fragments()

    def _check_fragments(self) -> None:
        fragments = self.fragments
        if any(left.end >= right.start for left, right in pairwise(fragments)):
            raise ValueError(f"fragments must be apart and in order, got {fragments}")
        ends = (fragments[0].start, fragments[-1].end)
        if len(fragments) < 2 or ends != (self.span.start, self.span.end):
            raise ValueError(f"{self.span} is not the span of the fragments {fragments}")

    @classmethod
    def from_fragments(
        cls, fragments: Iterable[SpanT], label: str, score: float | None = None
    ) -> Entity[SpanT]:
        """Build an entity from fragments in any order; those that touch or overlap are merged."""
        merged: list[SpanT] = []
        for fragment in sorted(fragments):
            if merged and fragment.start <= merged[-1].end:
                start, end = merged[-1].start, max(merged[-1].end, fragment.end)
                merged[-1] = type(fragment)(start, end)
            else:
                merged.append(fragment)
        if not merged:
            raise ValueError("an entity needs at least one fragment")
        span = type(merged[0])(merged[0].start, merged[-1].end)
        return cls(span, label, score, tuple(merged) if len(merged) > 1 else ())

    @property
    def spans(self) -> tuple[SpanT, ...]:
        """Its fragments or, if it is contiguous, its span. Equal entities have equal spans."""
        return self.fragments or (self.span,)

    @property
    def pieces(self) -> tuple[SpanT, ...]:
        """Deprecated: the old name of `spans`."""
        return self.spans
