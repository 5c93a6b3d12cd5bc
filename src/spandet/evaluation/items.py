"""Entities as plain tuples, which is what gets compared and counted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, repeat
from operator import add, sub
from typing import TypeAlias, cast

from spandet.text import CharSpan, Document, Entity, Sentence

Item: TypeAlias = tuple[int, int, tuple[int, ...], str]
"""Start, end, borders of the gaps (empty for an ordinary entity), label. Tuples, because a million
of them are hashed and sorted."""
ItemSpan: TypeAlias = tuple[int, int, tuple[int, ...]]
"""An item without its label."""
Envelope: TypeAlias = tuple[int, int]
"""From the first to the last unit of an entity, gaps included."""


def items_of(document: Document) -> list[Item]:
    """The entities of a document in its own characters, duplicates included."""
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
    borders = [border for piece in entity.fragments for border in (piece.start, piece.end)]
    return tuple(borders[1:-1])


def pieces_of(item: Item) -> list[tuple[int, int]]:
    """The parts of an item from left to right."""
    start, end, gaps, _ = item
    borders = (start, *gaps, end)
    return list(zip(borders[::2], borders[1::2], strict=True))


class Visible:
    """Counts the visible characters of a text, those that are not white space."""

    __slots__ = ("_spaces",)

    def __init__(self, text: str) -> None:
        self._spaces = list(compress(range(len(text)), map(str.isspace, text)))

    def before(self, offset: int) -> int:
        """How many of them stand before an offset."""
        return offset - bisect_left(self._spaces, offset)

    def before_each(self, offsets: Sequence[int]) -> tuple[int, ...]:
        """The same for many offsets at once, which is faster."""
        return tuple(map(sub, offsets, map(bisect_left, repeat(self._spaces), offsets)))

    def squeezed(self, items: Iterable[Item]) -> set[Item]:
        """Items counted in visible characters; a gap of white space only is no gap any more."""
        return {
            (self.before(start), self.before(end), self._squeezed_gaps(gaps) if gaps else (), label)
            for start, end, gaps, label in items
        }

    def _squeezed_gaps(self, gaps: tuple[int, ...]) -> tuple[int, ...]:
        borders = self.before_each(gaps)
        pairs = zip(borders[::2], borders[1::2], strict=True)
        return tuple(chain.from_iterable(pair for pair in pairs if pair[0] < pair[1]))


def without_space(text: str) -> Callable[[int], int]:
    """A function from an offset in the text to the number of its visible characters before it."""
    return Visible(text).before


class Words:
    """Where the words of a document stand; a word's index counts through all its sentences."""

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
    """The items of one side of one document in columns, sorted, each with the words it touches.

    An item touches the words that share a character with it: `firsts[i]` to before `afters[i]`,
    no word at all where the two are equal. Columns, because zipping and mapping lists is several
    times faster than a loop over objects.
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
        """How many words each item touches outside its gaps; at least one."""
        lengths = list(map(sub, self.afters, self.firsts))
        if any(self.gaps):
            lengths = [
                self._length_without_gaps(item) if item[2] else length
                for item, length in zip(self.ordered, lengths, strict=True)
            ]
        return [length or 1 for length in lengths] if 0 in lengths else lengths

    def _length_without_gaps(self, item: Item) -> int:
        number = last = 0
        for start, end in pieces_of(item):
            first = bisect_right(self._words.ends, start)
            after = bisect_left(self._words.starts, end)
            # Two pieces of one word touch it once.
            number += max(0, after - max(first, last))
            last = max(last, after)
        return number
