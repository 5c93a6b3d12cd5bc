"""Entities as plain tuples, which are compared and counted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, compress, repeat
from operator import add, sub
from typing import TypeAlias, cast

from spandet.text import CharSpan, Document, Entity, Sentence

Item: TypeAlias = tuple[int, int, tuple[int, ...], str]
"""Start, end, borders of the gaps (empty for a contiguous entity), label. Tuples, because millions
of them are hashed and sorted."""
ItemSpan: TypeAlias = tuple[int, int, tuple[int, ...]]
"""An item without its label."""
Envelope: TypeAlias = tuple[int, int]
"""From the first to the last unit of an entity, gaps included."""


def items_of(document: Document) -> list[Item]:
    """The entities of a document by character offsets, duplicates included."""
    return [
        (
            (span := entity.span).start,
            span.end,
            _gaps(entity) if entity.fragments else (),
            entity.label,
        )
        for entity in document.entities
    ]


def _gaps(entity: Entity[CharSpan]) -> tuple[int, ...]:
    borders = [border for part in entity.fragments for border in (part.start, part.end)]
    return tuple(borders[1:-1])


def fragments_of(item: Item) -> list[tuple[int, int]]:
    """Start and end of each fragment of an item, from left to right."""
    start, end, gaps, _ = item
    borders = (start, *gaps, end)
    return list(zip(borders[::2], borders[1::2], strict=True))


class Visible:
    """Offsets of a text in visible characters, that is, without white space."""

    __slots__ = ("_spaces",)

    def __init__(self, text: str) -> None:
        self._spaces = list(compress(range(len(text)), map(str.isspace, text)))

    def before(self, offset: int) -> int:
        """The number of visible characters before an offset."""
        return offset - bisect_left(self._spaces, offset)

    def before_each(self, offsets: Sequence[int]) -> tuple[int, ...]:
        """The same for many offsets at once, for speed."""
        return tuple(map(sub, offsets, map(bisect_left, repeat(self._spaces), offsets)))

    def visible_items(self, items: Iterable[Item]) -> set[Item]:
        """Items by visible characters; gaps of white space only disappear."""
        return {
            (self.before(start), self.before(end), self._visible_gaps(gaps) if gaps else (), label)
            for start, end, gaps, label in items
        }

    def _visible_gaps(self, gaps: tuple[int, ...]) -> tuple[int, ...]:
        borders = self.before_each(gaps)
        pairs = zip(borders[::2], borders[1::2], strict=True)
        return tuple(chain.from_iterable(pair for pair in pairs if pair[0] < pair[1]))


class Words:
    """Start and end offsets of all words of a document, over all its sentences."""

    __slots__ = ("ends", "starts")

    def __init__(self, sentences: tuple[Sentence, ...], visible: Visible | None = None) -> None:
        starts = [sentence.starts for sentence in sentences]
        words = chain.from_iterable([sentence.words for sentence in sentences])
        self.starts = starts[0] if len(starts) == 1 else tuple(chain.from_iterable(starts))
        self.ends = tuple(map(add, self.starts, map(len, words)))
        if visible is not None:
            self.starts = visible.before_each(self.starts)
            self.ends = visible.before_each(self.ends)


_Columns: TypeAlias = tuple[
    tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], tuple[str, ...]
]


def _columns(items: list[Item]) -> _Columns:
    return cast("_Columns", tuple(zip(*items, strict=True))) if items else ((), (), (), ())


class Side:
    """The sorted items of one side (gold or predicted) of a document, with their words.

    An item touches the words that share a character with it: `firsts[i]` <= word < `afters[i]`,
    which may be none. Stored as columns, because zip and map over lists are several times faster
    than a loop over objects.
    """

    __slots__ = ("_words", "afters", "envelopes", "firsts", "gaps", "labels", "ordered", "spans")

    def __init__(self, items: Iterable[Item], words: Words) -> None:
        self._words = words
        self.ordered = sorted(items)
        starts, ends, gaps, self.labels = _columns(self.ordered)
        self.gaps = gaps
        self.envelopes = list(zip(starts, ends, strict=True))
        self.spans = list(zip(starts, ends, gaps, strict=True))
        word_starts, word_ends = words.starts, words.ends
        self.firsts = [bisect_right(word_ends, start) for start in starts]
        self.afters = [bisect_left(word_starts, end) for end in ends]

    def lengths(self) -> list[int]:
        """The number of words that each item touches, gaps excluded; at least 1."""
        lengths = list(map(sub, self.afters, self.firsts))
        if any(self.gaps):
            lengths = [
                self._length_without_gaps(item) if item[2] else length
                for item, length in zip(self.ordered, lengths, strict=True)
            ]
        return [length or 1 for length in lengths] if 0 in lengths else lengths

    def _length_without_gaps(self, item: Item) -> int:
        number = last = 0
        for start, end in fragments_of(item):
            first = bisect_right(self._words.ends, start)
            after = bisect_left(self._words.starts, end)
            # Two fragments in the same word touch it once.
            number += max(0, after - max(first, last))
            last = max(last, after)
        return number
