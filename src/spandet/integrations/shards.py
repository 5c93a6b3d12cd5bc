"""Shards of a corpus, which workers read, predict and write independently.

A shard of a JSONL file is a range of bytes with the lines that begin in it; a gzipped file is one
shard. A shard of a Parquet file is a row group. Paths may be URIs that pyarrow supports.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from pyarrow import ArrowException, fs

from spandet.errors import FormatError, UsageError
from spandet.formats import jsonl
from spandet.formats.records import write_json_lines
from spandet.formats.source import STDIN, Parsed, Source
from spandet.integrations import parquet
from spandet.text import Document

Kind = Literal["jsonl", "parquet"]
_SUFFIXES: dict[str, Kind] = {".jsonl": "jsonl", ".jsonl.gz": "jsonl", ".parquet": "parquet"}
_GZIP_MAGIC = b"\x1f\x8b"
_BLOCK_BYTES = 1 << 16
_HASHED_BYTES = 1 << 20
_DRAFT = ".draft"


@dataclass(frozen=True, slots=True)
class Shard:
    """A range of bytes of a JSONL file, or a row group of a Parquet file."""

    number: int
    kind: Kind
    path: str
    start: int
    end: int | None
    """None: up to the end of the file (gzip)."""

    @property
    def name(self) -> str:
        """Name in error messages."""
        if self.kind == "parquet":
            return f"group {self.start} of {self.path}"
        return _Range(self.path, self.start, self.end).name

    def read(self) -> Iterator[Parsed]:
        """The documents, with an error in place of each bad record."""
        if self.kind == "jsonl":
            yield from jsonl.read(_Range(self.path, self.start, self.end))
            return
        with _opened(self.path) as stream:
            yield from parquet.read(stream, self.path, group=self.start)


def plan(inputs: Iterable[str], *, shard_bytes: int) -> list[Shard]:
    """The shards of all inputs in order.

    Raises:
        UsageError: An input is missing, or neither JSONL nor Parquet.
    """
    shards: list[Shard] = []
    for kind, path in (found for name in inputs for found in _files(name)):
        for start, end in _ranges(kind, path, shard_bytes):
            shards.append(Shard(len(shards), kind, path, start, end))
    return shards


def part_name(shard: Shard, kind: Kind) -> str:
    """Name of the part of a shard; sorted by name, parts are in the order of the input."""
    return f"part-{shard.number:06}.{kind}"


def is_draft(name: str) -> bool:
    """Whether a file name is that of an unfinished file of `written`."""
    return name.startswith(".") and name.endswith(_DRAFT)


def write_part(documents: Iterable[Document], folder: str, name: str) -> str:
    """Write a part atomically, and return the checksum of the file."""
    with written(folder, name) as out:
        if name.endswith(".parquet"):
            parquet.write(documents, out)
        else:
            text = io.TextIOWrapper(out, encoding="utf-8", newline="")
            write_json_lines(documents, text, jsonl.record_of)
            text.flush()
            text.detach()
    return digest_of(f"{folder}/{name}")


@contextmanager
def written(folder: str, name: str) -> Iterator[BinaryIO]:
    """A stream to a file that is replaced atomically when the stream is closed."""
    system, place = located(folder)
    draft = f"{place}/.{name}.{secrets.token_hex(4)}{_DRAFT}"
    try:
        with system.open_output_stream(draft, compression=None) as out:
            yield out
        system.move(draft, f"{place}/{name}")
    finally:
        if system.get_file_info(draft).type != fs.FileType.NotFound:
            system.delete_file(draft)


def digest_of(path: str) -> str:
    """The checksum of a file."""
    digest = hashlib.sha256()
    with _opened(path) as stream:
        while block := stream.read(_HASHED_BYTES):
            digest.update(block)
    return digest.hexdigest()


def located(path: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path in it, for a local path or a URI."""
    if "://" not in path:
        return fs.LocalFileSystem(), str(Path(path).absolute())
    try:
        return cast("tuple[fs.FileSystem, str]", fs.FileSystem.from_uri(path))
    except (ArrowException, OSError) as error:
        raise UsageError(f"cannot use {path}: {error}") from None


@dataclass(frozen=True)
class _Range(Source):
    """The lines of a file that begin in a range of bytes, as a source of its own."""

    start: int = 0
    end: int | None = None

    @property
    def name(self) -> str:
        """Name in error messages; lines are counted from the start of the range."""
        return self.path if self.start == 0 else f"{self.path} from byte {self.start}"

    @contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """The uncompressed bytes."""
        with _opened(self.path) as stream:
            if self.end is None:
                with _unzipped(stream, self.path) as unzipped:
                    yield unzipped
                return
            first = _line_start(stream, self.start)
            last = _line_start(stream, self.end)
            yield cast("BinaryIO", io.BufferedReader(_Window(stream, first, last), _BLOCK_BYTES))


class _Window(io.RawIOBase):
    """A range of bytes of a stream."""

    def __init__(self, stream: BinaryIO, start: int, end: int) -> None:
        stream.seek(start)
        self._stream, self._left = stream, end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


@contextmanager
def _unzipped(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    try:
        yield cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"damaged gzip data ({error})", name) from error


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    system, place = located(path)
    try:
        stream = system.open_input_file(place)
    except (ArrowException, OSError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    with stream:
        yield stream


def _line_start(stream: BinaryIO, offset: int) -> int:
    """Position of the first line that begins at `offset` or later."""
    if offset == 0:
        return 0
    stream.seek(offset - 1)
    position = offset - 1
    while block := stream.read(_BLOCK_BYTES):
        found = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
    return position


def _files(name: str) -> list[tuple[Kind, str]]:
    """The files of an input in order: the file itself, or those of a folder."""
    if name == STDIN:
        raise UsageError("workers cannot read standard input: use files or folders")
    system, place = located(name)
    info = system.get_file_info(place)
    if info.type == fs.FileType.NotFound:
        raise UsageError(f"cannot read {name}: there is no such file or folder")
    if info.type != fs.FileType.Directory:
        return [(_kind(name), name if "://" in name else place)]
    inside = system.get_file_info(fs.FileSelector(place, recursive=True))
    names = sorted(str(each.path) for each in inside if each.is_file and _is_input(each.base_name))
    if not names:
        raise UsageError(f"the folder {name} has no file {' or '.join(_SUFFIXES)}")
    root = name.rstrip("/") if "://" in name else place
    return [(_kind(each), root + each.removeprefix(place.rstrip("/"))) for each in names]


def _is_input(name: str) -> bool:
    return name.endswith(tuple(_SUFFIXES)) and not name.startswith((".", "_"))


def _kind(name: str) -> Kind:
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    raise UsageError(f"{name} does not end in {' or '.join(_SUFFIXES)}: convert it first")


def _ranges(kind: Kind, path: str, shard_bytes: int) -> Iterator[tuple[int, int | None]]:
    with _opened(path) as stream:
        if kind == "parquet":
            yield from ((group, group + 1) for group in range(parquet.row_groups(stream, path)))
        elif stream.read(2) == _GZIP_MAGIC:
            yield 0, None
        else:
            size = stream.seek(0, io.SEEK_END)
            yield from ((at, min(at + shard_bytes, size)) for at in range(0, size, shard_bytes))
