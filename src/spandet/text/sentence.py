"""Sentences: words with their character offsets in the document."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import add, le
from typing import Any

from spandet.text.entity import CharSpan, WordSpan


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence. `text[start : start + len(word)] == word` holds for each of them."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    """Start of each word, in characters of the document's text."""
    tags: tuple[str, ...] = ()
    """One part-of-speech tag per word, or none at all."""
    before: tuple[str, ...] = ()
    """Words that precede it in its source without being part of the document (context only)."""
    after: tuple[str, ...] = ()
    """Words that follow it in its source without being part of the document (context only)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    before_lengths: tuple[int, ...] = ()
    """Number of words of each sentence in `before`; empty: unknown, it counts as one sentence."""
    after_lengths: tuple[int, ...] = ()
    """Number of words of each sentence in `after`; empty: unknown, it counts as one sentence."""

    def __post_init__(self) -> None:
        if len(self.starts) != len(self.words):
            raise ValueError(f"{len(self.words)} words, but {len(self.starts)} starts")
        if self.tags and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.words)} words, but {len(self.tags)} tags")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def span(self) -> CharSpan | None:
        """From its first to its last character; None without words."""
        return self.chars_of(WordSpan(0, len(self.words))) if self.words else None

    def chars_of(self, span: WordSpan) -> CharSpan:
        """The characters of the document's text that a span of words covers."""
        last = span.end - 1
        return CharSpan(self.starts[span.start], self.starts[last] + len(self.words[last]))

    def words_of(self, span: CharSpan) -> WordSpan | None:
        """The words that cover exactly these characters; None if there are none."""
        touched = self.words_touching(span)
        return touched if touched is not None and self.chars_of(touched) == span else None

    def words_touching(self, span: CharSpan) -> WordSpan | None:
        """The words that share at least one character with the span; None if there are none."""
        first = max(0, bisect_right(self.starts, span.start) - 1)
        if first < len(self.words) and self.starts[first] + len(self.words[first]) <= span.start:
            first += 1
        end = bisect_left(self.starts, span.end)
        return WordSpan(first, end) if first < end else None


def misplaced_word(sentences: Iterable[Sentence]) -> str | None:
    """Describe the first word that overlaps its predecessor or is out of order, if any."""
    end = 0
    for number, sentence in enumerate(sentences):
        if not sentence.words:
            continue
        ends = list(map(add, sentence.starts, map(len, sentence.words)))
        if sentence.starts[0] < end or not all(map(le, ends, islice(sentence.starts, 1, None))):
            before = [end, *ends]
            word = next(i for i, start in enumerate(sentence.starts) if start < before[i])
            return (
                f"word {word} of sentence {number} starts at {sentence.starts[word]}, "
                f"before the end {before[word]} of the one before"
            )
        end = ends[-1]
    return None
