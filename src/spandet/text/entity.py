"""Entities: a span with a name."""

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
    """How sure its finder is, 0 to 1; None for what a person annotated."""
    fragments: tuple[SpanT, ...] = ()
    """The pieces of a discontinuous entity from left to right; empty for an ordinary one."""

    def __post_init__(self) -> None:
        if self.fragments:
            self._check_fragments()

    def _check_fragments(self) -> None:
        pieces = self.fragments
        if any(left.end >= right.start for left, right in pairwise(pieces)):
            raise ValueError(f"fragments must be apart and in order, got {pieces}")
        ends = (pieces[0].start, pieces[-1].end)
        if len(pieces) < 2 or ends != (self.span.start, self.span.end):
            raise ValueError(f"{self.span} is not the span of the fragments {pieces}")

    @classmethod
    def from_fragments(
        cls, fragments: Iterable[SpanT], label: str, score: float | None = None
    ) -> Entity[SpanT]:
        """An entity from its pieces in any order; pieces that touch or overlap become one."""
        merged: list[SpanT] = []
        for piece in sorted(fragments):
            if merged and piece.start <= merged[-1].end:
                start, end = merged[-1].start, max(merged[-1].end, piece.end)
                merged[-1] = type(piece)(start, end)
            else:
                merged.append(piece)
        if not merged:
            raise ValueError("an entity needs at least one fragment")
        span = type(merged[0])(merged[0].start, merged[-1].end)
        return cls(span, label, score, tuple(merged) if len(merged) > 1 else ())

    @property
    def pieces(self) -> tuple[SpanT, ...]:
        """Its fragments, or its one span: what must agree for two entities to be the same."""
        return self.fragments or (self.span,)
