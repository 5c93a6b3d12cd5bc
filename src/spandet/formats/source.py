"""Inputs: a file, plain or gzipped, or standard input, read as a stream with limits on memory."""

from __future__ import annotations

import errno
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from spandet.errors import FormatError, UsageError
from spandet.text import Document, WordRow

T = TypeVar("T")

STDIN = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
MOST_BYTES = 1 << 26
"""Maximum size of a record (64 MiB): a small gzip file may contain a line of any length."""
_ITEM_BYTES = 16
"""Memory of a word or line besides its characters."""


@dataclass(frozen=True)
class Source:
    """A file, a folder or, as `-`, standard input."""

    path: str

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "<stdin>" if self.path == STDIN else self.path

    @property
    def stem(self) -> str:
        """The file's name without folders, `.gz` and suffix; used as the id of its document."""
        return Path(self.path.removesuffix(".gz")).stem

    def sibling(self, suffix: str, *, instead_of: str) -> Source:
        """The file in the same folder with another suffix, gzipped or not."""
        beside = self.path.removesuffix(".gz").removesuffix(instead_of) + suffix
        zipped = beside + ".gz"
        return Source(zipped if Path(zipped).exists() and not Path(beside).exists() else beside)

    def check(self) -> None:
        """Check that it exists and may be read, without opening it.

        Raises:
            UsageError: it is missing, a link to something missing, or there is no permission.
        """
        if self.path == STDIN:
            return
        try:
            Path(self.path).stat()
        except (FileNotFoundError, NotADirectoryError):
            if Path(self.path).is_symlink():
                end = Path(self.path).readlink()
                raise UsageError(f"{self.name} is a link to {end}, which is missing") from None
            raise UsageError(f"there is no file {self.name}") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL character in a name
            raise _unreadable(self, error) from None
        if not os.access(self.path, os.R_OK):
            raise UsageError(f"cannot read {self.name}: {os.strerror(errno.EACCES)}")

    @contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """Open it as a stream of unzipped bytes; damaged gzip data raise a FormatError."""
        raw = _open(self)
        try:
            zipped = raw.peek(2)[:2] == _GZIP_MAGIC
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if zipped else cast("BinaryIO", raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FormatError(f"damaged gzip data ({error})", self.name) from error
        except OSError as error:
            raise _unreadable(self, error) from error
        finally:
            if self.path != STDIN:
                raw.close()

    def head(self) -> str:
        """Its first characters, without consuming them."""
        if self.path == STDIN:
            return _stdin().peek(_HEAD_BYTES)[:_HEAD_BYTES].decode("utf-8", "replace")
        with self.binary() as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", "replace")

    def lines(self) -> Iterator[tuple[int, str | FormatError]]:
        """Numbered lines without line ends; a line that is not UTF-8 is yielded as an error."""
        with self.binary() as stream:
            for number, raw in enumerate(
                iter(lambda: stream.readline(MOST_BYTES + 1), b""), start=1
            ):
                if len(raw) > MOST_BYTES:
                    _skip_line(stream, raw)
                    yield number, too_long("line").at(f"{self.name}:{number}")
                    continue
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    yield number, _not_utf8(error).at(f"{self.name}:{number}")
                else:
                    yield number, line.rstrip("\r\n")

    def text(self, *, encoding: str = "utf-8-sig") -> str:
        """Its whole text with unchanged line ends; the encoding "utf-8" keeps a byte order mark."""
        with self.binary() as stream:
            data = stream.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise too_long("text").at(self.name)
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                raise _not_utf8(error).at(self.name) from error

    def attempt(self, place: int | str, parse: Callable[[T], Document], record: T) -> Parsed:
        """Parse a record; returns a document, or an error with file and place."""
        try:
            return parse(record)
        except FormatError as error:
            return error.at(f"{self.name}:{place}")


Parsed = Document | FormatError
"""A reader yields a document or an error for each record. It raises an error only if the rest of
the file cannot be read."""


class SizeLimit:
    """Counts the size of a record that is read in parts; too large a record is an error."""

    def __init__(self, place: str, what: str) -> None:
        self._place = place
        self._what = what
        self._size = 0

    def add(self, characters: int, *, items: int = 1) -> None:
        """Count a further part of the record.

        Raises:
            FormatError: the record is too large.
        """
        self._size += characters + _ITEM_BYTES * items
        if self._size > MOST_BYTES:
            raise too_long(self._what).at(self._place)


class Rows(list[WordRow]):
    """The sentences of the document that is being read, with a limit on their size."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._limit = SizeLimit(source.name, "document")

    def append(self, row: WordRow) -> None:
        """Add a sentence."""
        kept = (*row.words, *row.tags, *row.before, *row.after, str(row.metadata))
        self._limit.add(sum(map(len, kept)), items=len(kept) + len(row.entities))
        super().append(row)


def too_long(what: str, most: int | None = None) -> FormatError:
    """Make the error for a record that is too long."""
    size = (most or MOST_BYTES) >> 20
    return FormatError(f"a {what} of more than {size} MiB, which is too long to read")


def _skip_line(stream: BinaryIO, raw: bytes) -> None:
    """Read to the end of a line without keeping it in memory."""
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(_CHUNK_BYTES)


def _open(source: Source) -> BufferedReader:
    if source.path == STDIN:
        return _stdin()
    try:
        return Path(source.path).open("rb")
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: OSError | ValueError) -> UsageError:
    why = getattr(error, "strerror", None) or error
    return UsageError(f"cannot read {source.name}: {why}")


def _stdin() -> BufferedReader:
    return cast("BufferedReader", sys.stdin.buffer)


def _not_utf8(error: UnicodeDecodeError) -> FormatError:
    byte = error.object[error.start]
    return FormatError(f"byte 0x{byte:02x} at position {error.start} is not UTF-8")
