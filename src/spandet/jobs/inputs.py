"""The inputs of a job: files, folders and standard input, one after another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spandet.errors import FormatError, UsageError
from spandet.formats import Corpus, read
from spandet.formats.corpus import files_of
from spandet.formats.source import STDIN, Source
from spandet.text import Document

if TYPE_CHECKING:
    from hashlib import _Hash

_COUNTED_BYTES = 1 << 28
"""Larger files are not read just to count their lines."""


@dataclass(frozen=True)
class Inputs:
    """Documents of several corpora, in order."""

    corpora: tuple[Corpus, ...]
    skip_bad: bool = False
    """Skip bad records, and documents that cannot be predicted."""

    @classmethod
    def of(
        cls,
        paths: Iterable[str],
        format: str | None = None,  # noqa: A002 (the name that users expect)
        *,
        skip_bad: bool = False,
    ) -> Inputs:
        """Build inputs from paths; only the beginnings of files are read, to detect formats.

        Standard input in no other format is read as plain text.

        Raises:
            UsageError: a format is unknown or cannot be detected, or an input cannot be read.
        """
        names = list(paths)
        if names.count(STDIN) > 1:
            raise UsageError("standard input can be read only once: give - once")
        return cls(tuple(_corpus(name, format, skip_bad=skip_bad) for name in names), skip_bad)

    def __iter__(self) -> Iterator[Document]:
        for corpus in self.corpora:
            yield from corpus

    @property
    def names(self) -> list[str]:
        """The paths as they were given."""
        return [corpus.source.path for corpus in self.corpora]

    @property
    def files(self) -> list[str]:
        """The names, and all files in them that are read."""
        inside = (name for corpus in self.corpora for name in corpus.files())
        return list(dict.fromkeys([*self.names, *inside]))

    @property
    def skipped(self) -> list[FormatError]:
        """The bad records that were skipped: the first thousand of each input."""
        return [error for corpus in self.corpora for error in corpus.skipped]

    @property
    def skips(self) -> int:
        """Total number of records that were skipped."""
        return sum(corpus.skips for corpus in self.corpora)

    def digests(self) -> dict[str, str]:
        """The checksum of each input by its name, except of those that can be read only once.

        Raises:
            UsageError: an input cannot be read.
        """
        try:
            return {
                corpus.source.path: digest
                for corpus in self.corpora
                if (digest := _digest(corpus)) is not None
            }
        except OSError as error:
            raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None

    def total(self) -> int | None:
        """Number of documents, bad ones included; None where counting takes too long."""
        total = 0
        for corpus in self.corpora:
            for part in files_of(corpus.source, corpus.format):
                count = _count(part, corpus)
                if count is None:
                    return None
                total += count
        return total


def _corpus(name: str, format_: str | None, *, skip_bad: bool) -> Corpus:
    if format_ is not None or name != STDIN:
        return read(name, format_, skip_bad=skip_bad)
    try:
        return read(name, skip_bad=skip_bad)
    except UsageError:
        if Source(STDIN).head().lstrip("\ufeff \t\r\n").startswith(("{", "[", "<")):
            raise
        return read(name, "text", skip_bad=skip_bad)


def _digest(corpus: Corpus) -> str | None:
    """Checksum of the names and contents of all files of a corpus, including texts."""
    path = Path(corpus.source.path)
    if corpus.source.path == STDIN or not (path.is_file() or path.is_dir()):
        return None
    digest = hashlib.sha256()
    for name in sorted(corpus.files()):
        inside = os.fsencode(os.path.relpath(name, path))
        digest.update(inside + b"\0" + _file_digest(Path(name)).digest())
    return digest.hexdigest()


def _file_digest(path: Path) -> _Hash:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256")


def _count(part: Source, corpus: Corpus) -> int | None:
    """Number of documents of one file; None where counting takes too long."""
    path = Path(part.path)
    if part.path == STDIN or not path.is_file():
        return None
    if corpus.format.document_per == "file":
        return 1
    is_counted = corpus.format.document_per == "line" and path.suffix != ".gz"
    if not is_counted or path.stat().st_size > _COUNTED_BYTES:
        return None
    with path.open("rb") as stream:
        return sum(1 for line in stream if not line.isspace())
