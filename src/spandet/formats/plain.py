"""Plain text in UTF-8: a document per file with its line ends as they are, or one per line.

There are no entities and no ends. A file's document is called like the file, without its suffix;
a line's document like the file and the line's number ("notes:3"), and empty lines are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from spandet.errors import FormatError
from spandet.formats.source import STDIN, Parsed, Source
from spandet.text import Document


def read(source: Source) -> Iterator[Parsed]:
    """The one document of a text file."""
    try:
        yield Document(source.text(), id=None if source.path == STDIN else source.stem)
    except FormatError as error:
        yield error


def read_lines(source: Source) -> Iterator[Parsed]:
    """One document per line, as a stream."""
    stem = "" if source.path == STDIN else f"{source.stem}:"
    for number, line in source.lines():
        if isinstance(line, FormatError):
            yield line
        elif line.strip():
            yield Document(line, id=f"{stem}{number}")
