"""A text with its entities as HTML: <mark> elements around parts of the text.

CSS draws the bar of a <mark> below its words, at the depth of its layer. Elements of nearer layers
contain those of farther ones; where entities cross, the farther one is split into adjacent
elements. So a bar continues over line ends, may begin inside a word, and leaves Arabic letters
joined, and copying from the page gives the plain text.
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
from spandet.viewing.labels import LabelNumbers, label_pixels
from spandet.viewing.layout import layers
from spandet.viewing.outcomes import ShownEntity

_LETTER_PIXELS = 8
_SYMBOL_PIXELS = 12

# A browser replaces CR by LF and drops NUL, and surrogates cannot be encoded.
_ESCAPES = {0: "\ufffd", 0x0D: "&#13;"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def safe(text: str) -> str:
    """The text as HTML, for content and for quoted attributes."""
    return escape(text).translate(_ESCAPES)


@dataclass(frozen=True, slots=True)
class Block:
    """The HTML of one block of text."""

    html: str
    room: int
    """The number of layers that all lines have room for; lines with more layers grow."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A fragment of an entity or the gap between two, on its layer."""

    shown: ShownEntity
    number: int
    """The index of the entity in the document."""
    layer: int
    label_number: int
    start: int
    end: int
    is_gap: bool


def mark_up(
    text: str, blocks: Sequence[CharSpan], entities: Sequence[ShownEntity], numbers: LabelNumbers
) -> Iterator[Block]:
    """The HTML of each block; together the blocks are the whole text."""
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


def _parts(entities: Sequence[ShownEntity], numbers: LabelNumbers) -> Iterator[_Part]:
    label_numbers = [numbers[shown.entity.label] for shown in entities]
    order = sorted(range(len(entities)), key=lambda i: -len(entities[i].entity.span))
    spans = [entities[i].entity.span for i in order]
    found = layers([(span.start, span.end) for span in spans])
    for i, layer in zip(order, found, strict=True):
        fragments = entities[i].entity.spans
        gaps = [(left.end, right.start, True) for left, right in pairwise(fragments)]
        for start, end, is_gap in [*((f.start, f.end, False) for f in fragments), *gaps]:
            yield _Part(entities[i], i, layer, label_numbers[i], start, end, is_gap)


@dataclass(slots=True)
class _Element:
    """A <mark> whose end is known only when it closes."""

    part: _Part
    start: int
    end: int
    continues: bool
    """It continues a bar that was interrupted by the border of another entity."""
    describes: bool
    """It is the first element of its entity and has the attributes for the tooltip."""

    def tag(self, text: str, *, joined: bool) -> str:
        """The opening tag; `joined` is the result of `is_joined`."""
        part, entity = self.part, self.part.shown.entity
        names = [f"k{part.label_number}"]
        if part.shown.outcome is not None:
            names.append(part.shown.outcome.value)
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
            at = ",".join(f"{part.start}:{part.end}" for part in entity.spans)
            score = "" if entity.score is None else f' data-score="{entity.score:.4g}"'
            attributes += f' data-at="{at}"{score}'
        return f"<mark {attributes}><span>"

    def is_joined(self, text: str) -> bool:
        """Whether it begins or ends between letters that are drawn joined."""
        return any(
            0 < at < len(text) and _joins(text[at - 1], text[at]) for at in (self.start, self.end)
        )

    def _is_narrow(self, text: str) -> bool:
        """Whether the name of the label is longer than the words."""
        words = printable(text[self.start : self.end])
        symbol = _SYMBOL_PIXELS if self.part.shown.outcome else 0
        need = label_pixels(self.part.shown.entity.label) + symbol
        return cell_len(words) * _LETTER_PIXELS < need


def _joins(before: str, after: str) -> bool:
    """Whether two characters may be drawn as one, as in Arabic, Devanagari or emoji."""
    return not any(
        character.isascii()
        or unicodedata.category(character)[0] in "PZ"
        or (character.isalpha() and unicodedata.east_asian_width(character) in "WF")
        for character in (before, after)
    )


class _Writer:
    """Writes blocks one after another; keeps track of open elements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.described: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        self.output: list[str | _Element] = []
        self.open: list[_Element] = []
        self.drawn: set[_Part] = set()

    def write(self, wanted: Sequence[_Part], start: int, end: int) -> None:
        """Write text[start:end] inside exactly these elements, outermost first."""
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
        """Close all open elements and begin the next block."""
        self._close(0, end)
        html, room = [], 0
        for item in self.output:
            if isinstance(item, _Element):
                joined = item.is_joined(self.text)
                room = max(room, item.part.layer + 1 if joined else 0)
                html.append(item.tag(self.text, joined=joined))
            else:
                html.append(item)
        block = Block("".join(html), room)
        self._begin()
        return block

    def _close(self, keep: int, at: int) -> None:
        for element in self.open[keep:]:
            element.end = at
            self.output.append("</span></mark>")
        del self.open[keep:]
