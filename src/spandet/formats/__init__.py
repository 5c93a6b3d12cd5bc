"""Formats: one reader and writer per file, and the table that names them; torch is never loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any

from spandet.errors import FormatError, UsageError
from spandet.formats.corpus import Corpus, Format
from spandet.formats.detection import detect_reader, detect_writer
from spandet.formats.overwriting import refuse_overwriting
from spandet.formats.source import Source
from spandet.formats.table import FORMATS
from spandet.formats.target import Target
from spandet.text import Document

__all__ = ["FORMATS", "Corpus", "Format", "read", "write"]


def read(
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002 (the word that users know)
    *,
    skip_bad: bool = False,
    **options: Any,
) -> Corpus:
    """The documents of a file, a folder or `-` (standard input), plain or gzipped.

    Args:
        path: What to read.
        format: A name from `FORMATS`; without one, the file's name and beginning decide.
        skip_bad: Pass over bad records and list them in the corpus's `skipped`.
        **options: What the format's reader takes, such as `spans_key` for "docbin".

    Raises:
        UsageError: there is no such file or no permission to read it; the format is unknown, cannot
            be read, or cannot be told.
        FormatError: while iterating, at the first bad record.
    """
    source = Source(fspath(path))
    source.check()
    row = _row(format or detect_reader(FORMATS, source))
    if row.read is None:
        raise UsageError(f"the format {format} can only be written")
    return Corpus(source, replace(row, read=partial(row.read, **options)), skip_bad)


def write(
    documents: Iterable[Document],
    path: str | PathLike[str],
    format: str | None = None,  # noqa: A002 (the word that users know)
    **options: Any,
) -> None:
    """Write documents to a file, a folder or `-` (standard output); complete or not at all.

    Raises:
        UsageError: the format is unknown, cannot be written, or cannot be told; or the documents
            are a corpus, and the path is that of one of its files.
        FormatError: a document holds what the format cannot; nothing is written.
    """
    target = Target(fspath(path))
    if isinstance(documents, Corpus):  # where documents come from elsewhere, nobody knows
        refuse_overwriting([documents.source.path, *documents.files()], target.path)
    row = _row(format or detect_writer(FORMATS, target))
    if row.write is None:
        raise UsageError(f"the format {format} can only be read")
    current = _Current()
    try:
        row.write(current.of(documents), target, **options)
    except FormatError as error:
        raise error.at(current.name) from error


class _Current:
    """Remembers which document a writer is at, for its error message."""

    name = "no document"

    def of(self, documents: Iterable[Document]) -> Iterator[Document]:
        for number, document in enumerate(documents):
            self.name = f"document {number if document.id is None else repr(document.id)}"
            yield document


def _row(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"no format is called {name!r}; there are {', '.join(FORMATS)}")
    row = FORMATS[name]
    if row.variant_of is None:
        return row
    original = FORMATS[row.variant_of]
    return replace(row, suffixes=original.suffixes, beside=original.beside)
