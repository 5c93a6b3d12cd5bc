"""Where records come from: a file, plain or gzipped, or standard input; read as a stream."""

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
from spandet.text import Document

T = TypeVar("T")

STDIN = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
MOST_BYTES = 1 << 26
"""The longest record (64 MiB): a few kilobytes of gzip can hold a line that fills any memory."""


@dataclass(frozen=True)
class Source:
    """One readable thing and its name for messages. `-` is standard input."""

    path: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return "<stdin>" if self.path == STDIN else self.path

    @property
    def stem(self) -> str:
        """The file's name without folders, `.gz` and its suffix: an id where a file has none."""
        return Path(self.path.removesuffix(".gz")).stem

    def sibling(self, suffix: str, *, instead_of: str) -> Source:
        """The file beside this one with another suffix, gzipped or not."""
        beside = self.path.removesuffix(".gz").removesuffix(instead_of) + suffix
        zipped = beside + ".gz"
        return Source(zipped if Path(zipped).exists() and not Path(beside).exists() else beside)

    def check(self) -> None:
        """Say at once what cannot be read, and why; nothing is opened.

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
        """Its bytes, unzipped. Damage to the compression is a FormatError."""
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
        """Numbered lines without their line end; one that is not UTF-8 comes as its error."""
        with self.binary() as stream:
            for number, raw in enumerate(
                iter(lambda: stream.readline(MOST_BYTES + 1), b""), start=1
            ):
                if len(raw) > MOST_BYTES:
                    _leave_line(stream, raw)
                    yield number, too_long("line").at(f"{self.name}:{number}")
                    continue
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    yield number, _not_utf8(error).at(f"{self.name}:{number}")
                else:
                    yield number, line.rstrip("\r\n")

    def text(self, *, encoding: str = "utf-8-sig") -> str:
        """All of it, line ends as they are; "utf-8" keeps a byte order mark."""
        with self.binary() as stream:
            data = stream.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise too_long("text").at(self.name)
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                raise _not_utf8(error).at(self.name) from error

    def attempt(self, place: int | str, parse: Callable[[T], Document], record: T) -> Parsed:
        """The document that `parse` makes of a record, or its error with file and place."""
        try:
            return parse(record)
        except FormatError as error:
            return error.at(f"{self.name}:{place}")


Parsed = Document | FormatError
"""What a reader yields for a record: a document, or why there is none. A reader raises only when
nothing after the damage can be read."""


def too_long(what: str, most: int | None = None) -> FormatError:
    """A record that does not end soon enough."""
    size = (most or MOST_BYTES) >> 20
    return FormatError(f"a {what} of more than {size} MiB, which is too long to read")


def _leave_line(stream: BinaryIO, raw: bytes) -> None:
    """Go to the end of a line without holding it."""
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
