"""Reading and writing of corpora: one module per format, and the table `FORMATS`."""

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
    format: str | None = None,  # noqa: A002 (the name that users expect)
    *,
    skip_bad: bool = False,
    **options: Any,
) -> Corpus:
    """Read the documents of a file, a folder or `-` (standard input), plain or gzipped.

    Args:
        path: File or folder.
        format: A name from `FORMATS`; None detects it from the file's name and first bytes.
        skip_bad: Skip bad records and list them in the corpus's `skipped`.
        **options: Options of the format's reader, such as `spans_key` for "docbin".

    Raises:
        UsageError: the file does not exist or cannot be read; the format is unknown, cannot be
            read, or cannot be detected.
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
    format: str | None = None,  # noqa: A002 (the name that users expect)
    **options: Any,
) -> None:
    """Write documents to a file, a folder or `-` (standard output); complete or not at all.

    Raises:
        UsageError: the format is unknown, cannot be written, or cannot be detected; or the
            documents are a corpus, and the path is that of one of its files.
        FormatError: the format cannot represent a document; nothing is written.
    """
    target = Target(fspath(path))
    if isinstance(documents, Corpus):  # the input files of other iterables are unknown
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
    """The name of the document that is being written, for error messages."""

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
    return replace(row, suffixes=original.suffixes, text_suffixes=original.text_suffixes)
