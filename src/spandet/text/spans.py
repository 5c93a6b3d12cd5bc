"""Half-open spans; words and characters have a type each, so that they cannot be mixed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


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
