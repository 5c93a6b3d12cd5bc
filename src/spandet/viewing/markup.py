"""A text with its entities as HTML: the text itself in <mark> elements, nothing added between.

A page draws the bar of a <mark> below its words, at the depth of its layer. An element of a near
layer is around those of farther ones; where entities cross, the farther one is cut into elements
that meet without a seam. So a bar follows its words over line ends, cuts words exactly and leaves
Arabic letters joined, and copying from the page gives the plain text.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from rich.cells import cell_len

from spandet.text import CharSpan
from spandet.viewing.cells import printable
from spandet.viewing.colors import LabelNumbers
from spandet.viewing.labels import label_pixels
from spandet.viewing.layers import layers
from spandet.viewing.verdicts import Judged

_LETTER_PIXELS = 8
_SYMBOL_PIXELS = 12

# A browser would turn CR into LF and drop NUL, and half characters cannot be written.
_HARMLESS = {0: "\ufffd", 0x0D: "&#13;"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def safe(text: str) -> str:
    """The text as HTML, for content and for quoted attributes."""
    return escape(text).translate(_HARMLESS)


@dataclass(frozen=True, slots=True)
class Block:
    """The HTML of one block of text."""

    html: str
    room: int
    """How many layers every line must have room for; beyond them, lines grow by themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A piece of an entity or the gap between two, on its layer."""

    judged: Judged
    number: int
    """Which of the document's entities it is a part of."""
    layer: int
    label_number: int
    start: int
    end: int
    is_gap: bool


def mark_up(
    text: str, blocks: Sequence[CharSpan], entities: Sequence[Judged], numbers: LabelNumbers
) -> Iterator[Block]:
    """The HTML of each block; the blocks are the whole text."""
    starting: dict[int, list[_Part]] = defaultdict(list)
    borders = {block.start for block in blocks} | {len(text)}
    for part in _parts(entities, numbers):
        starting[part.start].append(part)
        borders |= {part.start, part.end}
    ends = {block.end for block in blocks}
    active: list[_Part] = []
    writer = _Writer(text)
    for start, end in pairwise(sorted(borders)):
        active = [part for part in active if part.end > start] + starting[start]
        active.sort(key=lambda part: part.layer)
        writer.write(active, start, end)
        if end in ends:
            yield writer.finish(end)


def _parts(entities: Sequence[Judged], numbers: LabelNumbers) -> Iterator[_Part]:
    label_numbers = [numbers[judged.entity.label] for judged in entities]
    order = sorted(range(len(entities)), key=lambda i: -len(entities[i].entity.span))
    spans = [entities[i].entity.span for i in order]
    found = layers([(span.start, span.end) for span in spans])
    for i, layer in zip(order, found, strict=True):
        pieces = entities[i].entity.pieces
        gaps = [(left.end, right.start, True) for left, right in pairwise(pieces)]
        for start, end, is_gap in [*((p.start, p.end, False) for p in pieces), *gaps]:
            yield _Part(entities[i], i, layer, label_numbers[i], start, end, is_gap)


@dataclass(slots=True)
class _Element:
    """A <mark> whose end is known only when it closes."""

    part: _Part
    start: int
    end: int
    continues: bool
    """It takes up a bar that another entity's border interrupted."""
    describes: bool
    """It is the first of its entity, which carries what a page says about it."""

    def tag(self, text: str, *, joined: bool) -> str:
        """Its opening tag; `joined` is what `is_joined` says."""
        part, entity = self.part, self.part.judged.entity
        names = [f"k{part.label_number}"]
        if part.judged.verdict is not None:
            names.append(part.judged.verdict.value)
        if part.is_gap:
            names.append("gap")
        elif self.continues:
            names.append("more")
        elif self._is_narrow(text) and not joined:
            names.append("narrow")
        if self.end < part.end:
            names.append("open")
        if joined:
            names.append("joined")
        attributes = f'class="{" ".join(names)}" style="--l:{part.layer}" data-i="{part.number}"'
        if self.describes:
            at = ",".join(f"{piece.start}:{piece.end}" for piece in entity.pieces)
            score = "" if entity.score is None else f' data-score="{entity.score:.4g}"'
            attributes += f' data-at="{at}"{score}'
        return f"<mark {attributes}><span>"

    def is_joined(self, text: str) -> bool:
        """Does it begin or end between letters that a cut would tear apart?"""
        return any(
            0 < at < len(text) and _joins(text[at - 1], text[at]) for at in (self.start, self.end)
        )

    def _is_narrow(self, text: str) -> bool:
        """Is the name longer than its words?"""
        words = printable(text[self.start : self.end])
        symbol = _SYMBOL_PIXELS if self.part.judged.verdict else 0
        need = label_pixels(self.part.judged.entity.label) + symbol
        return cell_len(words) * _LETTER_PIXELS < need


def _joins(before: str, after: str) -> bool:
    """May the two characters be one shape, as in Arabic, Devanagari or emoji?"""
    return not any(
        character.isascii()
        or unicodedata.category(character)[0] in "PZ"
        or (character.isalpha() and unicodedata.east_asian_width(character) in "WF")
        for character in (before, after)
    )


class _Writer:
    """Writes blocks one after the other and remembers which elements are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.described: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        self.output: list[str | _Element] = []
        self.open: list[_Element] = []
        self.drawn: set[_Part] = set()

    def write(self, wanted: Sequence[_Part], start: int, end: int) -> None:
        """Write text[start:end] inside exactly the wanted elements, the outermost first."""
        same = 0
        for element, part in zip(self.open, wanted, strict=False):
            if element.part is not part:
                break
            same += 1
        self._close(same, start)
        for part in wanted[same:]:
            describes = part.number not in self.described
            element = _Element(part, start, end, part in self.drawn, describes)
            self.output.append(element)
            self.open.append(element)
            self.drawn.add(part)
            self.described.add(part.number)
        self.output.append(safe(self.text[start:end]))

    def finish(self, end: int) -> Block:
        """Close what is open and begin the next block."""
        self._close(0, end)
        shown, room = [], 0
        for item in self.output:
            if isinstance(item, _Element):
                joined = item.is_joined(self.text)
                room = max(room, item.part.layer + 1 if joined else 0)
                shown.append(item.tag(self.text, joined=joined))
            else:
                shown.append(item)
        block = Block("".join(shown), room)
        self._begin()
        return block

    def _close(self, keep: int, at: int) -> None:
        for element in self.open[keep:]:
            element.end = at
            self.output.append("</span></mark>")
        del self.open[keep:]
