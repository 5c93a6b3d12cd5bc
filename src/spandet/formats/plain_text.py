"""Plain text in UTF-8, without entities: a document per file, or one per line.

The id of a file's document is the name of the file without its suffix; that of a line's document
also has the number of the line ("notes:3"). Line ends are kept; empty lines are no documents.
"""

from __future__ import annotations

from collections.abc import Iterator

from spandet.errors import FormatError
from spandet.formats.source import STDIN, Parsed, Source
from spandet.text import Document


def read(source: Source) -> Iterator[Parsed]:
    """Read the document of a text file."""
    try:
        yield Document(source.text(), id=None if source.path == STDIN else source.stem)
    except FormatError as error:
        yield error


def read_lines(source: Source) -> Iterator[Parsed]:
    """Read one document per line, as a stream."""
    stem = "" if source.path == STDIN else f"{source.stem}:"
    for number, line in source.lines():
        if isinstance(line, FormatError):
            yield line
        elif line.strip():
            yield Document(line, id=f"{stem}{number}")
