"""Half-open spans, whose unit is their type, and entities: labelled spans or fragments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Self, TypeVar


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open slice: start <= i < end."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"{type(self).__name__} needs 0 <= start < end, got {self.start}:{self.end}"
            )

    def __len__(self) -> int:
        return self.end - self.start

    def contains(self, other: Self) -> bool:
        """Whether every unit of `other` lies in this span; a span contains itself."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Self) -> bool:
        """Whether the two spans share a unit."""
        return self.start < other.end and other.start < self.end

    def crosses(self, other: Self) -> bool:
        """Whether the two spans overlap without one containing the other."""
        return self.overlaps(other) and not self.contains(other) and not other.contains(self)


@dataclass(frozen=True, slots=True, order=True)
class WordSpan(Span):
    """A slice of the words of one sentence."""


@dataclass(frozen=True, slots=True, order=True)
class CharSpan(Span):
    """A slice of the characters of one document."""


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
