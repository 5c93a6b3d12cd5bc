"""What a job reads: files, folders and standard input, one after another."""

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
    """Pass over bad records, and documents that cannot be predicted."""

    @classmethod
    def of(
        cls,
        paths: Iterable[str],
        format: str | None = None,  # noqa: A002 (the word that users know)
        *,
        skip_bad: bool = False,
    ) -> Inputs:
        """Inputs with these names; nothing but their beginnings is read yet.

        What stands on standard input and looks like no other format is plain text.

        Raises:
            UsageError: the format of one is unknown or cannot be told, or it cannot be read.
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
        """As they were given."""
        return [corpus.source.path for corpus in self.corpora]

    @property
    def files(self) -> list[str]:
        """The names, and the files behind them where they can be told."""
        inside = (name for corpus in self.corpora for name in corpus.files())
        return list(dict.fromkeys([*self.names, *inside]))

    @property
    def skipped(self) -> list[FormatError]:
        """The bad records that were passed over: the first thousand of each input."""
        return [error for corpus in self.corpora for error in corpus.skipped]

    @property
    def skips(self) -> int:
        """How many were passed over in all."""
        return sum(corpus.skips for corpus in self.corpora)

    def digests(self) -> dict[str, str]:
        """The checksum of each input by its name; what can be read only once has none.

        Raises:
            UsageError: one cannot be read.
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
    """Of the names and bytes of every file that is read, texts beside annotations among them."""
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
