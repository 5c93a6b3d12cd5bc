"""Text in the terminal: printable characters, widths in cells, line breaks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

import regex
from rich.cells import cell_len

_GRAPHEME = regex.compile(r"\X")
_JOINERS = regex.compile(
    "[\u200d\ufe0f]"
)  # with these, the width of a text is not the sum of the widths of its characters
_RIGHT_TO_LEFT = frozenset(["R", "AL", "RLE", "RLO", "RLI"])
_NOT_FIRST = frozenset(["Pe", "Pf", "Po"])  # categories that do not start a line: ) » 。
_NOT_LAST = frozenset(["Ps", "Pi"])  # nor end one: ( «


def _printable() -> dict[int, str]:
    """Symbols for control characters, which could send commands; a space for white space."""
    symbols = {code: chr(0x2400 + code) for code in range(0x20)}
    symbols |= {0x7F: "␡"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
    symbols |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # surrogates, which cannot be encoded
    spaces = [*range(0x09, 0x0E), *range(0x1C, 0x20), 0x85, 0x2028, 0x2029]
    return symbols | dict.fromkeys(spaces, " ")


_PRINTABLE = _printable()


def printable(text: str) -> str:
    """The text without control characters; its length does not change."""
    return text.translate(_PRINTABLE)


def is_right_to_left(text: str) -> bool:
    """Whether some character may be drawn from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text)


def cut(text: str, width: int) -> str:
    """The text, shortened with an ellipsis if it is wider than `width`."""
    if cell_len(text) <= width:
        return text
    kept = 0
    for _, end in units(text):
        if cell_len(text[:end]) >= width:
            break
        kept = end
    return f"{text[:kept]}…" if width > 0 else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A part of a text that fits the width, and the columns of each of its characters."""

    start: int
    text: str
    left: tuple[int, ...]
    """The first column of each character's grapheme."""
    right: tuple[int, ...]
    """The column after each character's grapheme."""

    @property
    def end(self) -> int:
        """The offset of its end in the text."""
        return self.start + len(self.text)


def lines(text: str, width: int, offset: int = 0) -> Iterator[Line]:
    """Break printable text at spaces and between wide characters; spaces at line ends are dropped.

    `offset` is added to the starts of the lines.
    """
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        line = _fill(text, start, width)
        yield replace(line, start=start + offset)
        start = line.end


def _fill(text: str, start: int, width: int) -> Line:
    """The longest line from `start` on; only words that are too wide for a line are broken."""
    left: list[int] = []
    right: list[int] = []
    may_break = start
    used = 0
    stop = len(text)
    for begin, end in units(text, start):
        if begin > start and _may_break(text[begin - 1], text[begin]):
            may_break = begin
        column = _column(text, start, begin, end, used)
        if column > width and begin > start:
            stop = begin if text[begin].isspace() or may_break == start else may_break
            break
        # Characters without width share the columns of the character before.
        left += [left[-1] if left and column == used else used] * (end - begin)
        right += [column] * (end - begin)
        used = column
    taken = text[start:stop].rstrip()
    return Line(start, taken, tuple(left[: len(taken)]), tuple(right[: len(taken)]))


def units(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Start and end of each grapheme, or of each character of a grapheme wider than 2 cells."""
    for match in _GRAPHEME.finditer(text, start):
        begin, end = match.span()
        if end - begin == 1 or cell_len(match[0]) <= 2:
            yield begin, end
        else:
            yield from ((i, i + 1) for i in range(begin, end))


def _column(text: str, start: int, begin: int, end: int, used: int) -> int:
    if text.isascii():
        return used + end - begin
    if _JOINERS.search(text, start, end) is None:
        return used + cell_len(text[begin:end])
    return cell_len(text[start:end])


def _may_break(before: str, after: str) -> bool:
    if after.isspace() or before.isspace():
        return before.isspace()
    if before.isascii() and after.isascii():
        return False
    return (
        cell_len(before) + cell_len(after) > 2
        and unicodedata.category(after) not in _NOT_FIRST
        and unicodedata.category(before) not in _NOT_LAST
    )
