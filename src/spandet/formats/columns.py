"""Text in columns, a word per line: shared by the CoNLL, GermEval and CoNLL-2012 formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from spandet.errors import FormatError
from spandet.formats.records import shown
from spandet.formats.source import SizeLimit, Source
from spandet.text import WordRow

_CELLS = re.compile("[^ ]+")
_CELLS_OF_A_LINE = 4
"""Typical number of cells per line, each of which becomes an object in memory."""


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one sentence."""

    file: str
    first: int
    """The number of its first line in the file."""
    lines: Sequence[str]

    def error(self, word: int, what: str) -> FormatError:
        """Make the error for the line of a word."""
        return FormatError(what, f"{self.file}:{self.first + word}")

    def columns(self) -> list[tuple[str, ...]]:
        """Its columns, separated by tabs, or by spaces in lines without a tab."""
        rows = self._rows()
        try:
            return list(zip(*rows, strict=True))
        except ValueError:
            width = len(rows[0])
            word = next(word for word, row in enumerate(rows) if len(row) != width)
            found = f"found {_columns(len(rows[word]))}, expected {width}"
            raise self.error(word, f"{found} as in the first line of the sentence") from None

    def _rows(self) -> list[list[str]]:
        whole = "\n".join(["", *self.lines, ""])
        if "\t" in whole or "  " in whole or " \n" in whole or "\n " in whole:
            cells = _CELLS.findall
            return [line.split("\t") if "\t" in line else cells(line) for line in self.lines]
        return [line.split(" ") for line in self.lines]  # three times faster


def sentences(
    source: Source, mark: str, parse: Callable[[Block], WordRow]
) -> Iterator[tuple[int, WordRow | str | FormatError]]:
    """Read the sentences, marked lines and errors of a file, each with its line number.

    Sentences are separated by empty lines; a line that begins with `mark` is yielded as a string.
    A sentence that cannot be decoded or parsed is yielded as its error.
    """
    first = 0
    lines: list[str] = []
    limit = SizeLimit(source.name, "sentence")
    damage: FormatError | None = None
    for number, line in chain(source.lines(), [(0, "")]):  # an empty line ends the last sentence
        if isinstance(line, FormatError):
            damage = damage or line
        elif line.strip(" \t") and not line.startswith(mark):
            if not lines:
                first, limit = number, SizeLimit(f"{source.name}:{number}", "sentence")
            limit.add(len(line), items=_CELLS_OF_A_LINE)
            lines.append(line)
        else:
            if damage is not None:
                yield number, damage
            elif lines:
                yield first, _parsed(Block(source.name, first, lines), parse)
            lines, damage = [], None
            if line.startswith(mark):
                yield number, line


def _parsed(block: Block, parse: Callable[[Block], WordRow]) -> WordRow | FormatError:
    try:
        return parse(block)
    except FormatError as error:
        return error


def need_columns(block: Block, found: int, expected: str) -> FormatError:
    """Make the error for a sentence that has too few columns, or too many."""
    return block.error(0, f"found {_columns(found)}, expected {expected}")


def check_cells(cells: Sequence[str], name: str, forbidden: re.Pattern[str]) -> None:
    """Refuse cells that a column cannot represent: empty ones, and those with a separator."""
    if "" not in cells and not forbidden.search("".join(cells)):
        return
    for number, cell in enumerate(cells):
        if not cell or forbidden.search(cell):
            problem = f"is {shown(cell)}" if cell else "is empty"
            raise FormatError(f"{name} {number} {problem}, which a column cannot hold")


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
