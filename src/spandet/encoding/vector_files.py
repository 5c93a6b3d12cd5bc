"""Files of word vectors: GloVe (text without a header), word2vec (text or binary), gzipped or not.

Text has a word and its numbers per line, separated by single spaces; word2vec has a first line with
the number of words and of dimensions. Binary word2vec has the same first line, and then each word,
a space, and its numbers as little-endian 32-bit floats.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from spandet.errors import FormatError
from spandet.formats.source import Source

_CHUNK = 1 << 20
_FLOAT_BYTES = 4
_MAX_DIM = 1 << 16


@dataclass(frozen=True)
class Vectors:
    """Sorted words, and the vector of each."""

    words: tuple[str, ...]
    table: np.ndarray
    """Floats, words × dimensions."""


@dataclass(frozen=True)
class _Header:
    count: int
    dim: int


def read_vectors(path: str, *, wanted: Collection[str] | None) -> Vectors:
    """Read the vectors of a file; the first one of a word that occurs more than once.

    Args:
        path: The file.
        wanted: Words to keep; None for all.

    Raises:
        FormatError: a line or word does not have the expected numbers.
    """
    source = Source(path)
    found: dict[str, np.ndarray] = {}
    for word, vector in _records(source, wanted):
        found.setdefault(word, vector)
    words = sorted(found)
    table = np.stack([found[word] for word in words]) if words else np.zeros((0, 1), np.float32)
    broken = ~np.isfinite(table).all(axis=1)
    if broken.any():
        word = words[int(broken.argmax())]
        raise FormatError(f"the vector of {word!r} has a number that is not finite", source.name)
    return Vectors(tuple(words), table)


def _records(source: Source, wanted: Collection[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    with source.binary() as stream:
        header = _header(stream.readline(_CHUNK))
        if header is not None and not _is_text(stream.readline(_CHUNK), header.dim):
            yield from _binary(source, header, wanted)
        else:
            yield from _text(source, header, wanted)


def _header(line: bytes) -> _Header | None:
    fields = line.removeprefix(BOM_UTF8).split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 10 for field in fields):
        return None
    count, dim = map(int, fields)
    return _Header(count, dim) if 0 < dim <= _MAX_DIM else None


def _is_text(line: bytes, dim: int) -> bool:
    """Whether the line after the header ends with numbers in text form."""
    return all(map(_is_number, line.rstrip().rsplit(b" ", dim)[1:]))


def _is_number(field: bytes | str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text(
    source: Source, header: _Header | None, wanted: Collection[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    dim = header.dim if header else 0
    for number, line in source.lines():
        if isinstance(line, FormatError):
            raise line
        if number == 1 and header:
            continue
        row = line.rstrip(" ")
        try:
            dim = dim or _dim(row)
            # Fast path: most words are not wanted, and their lines need not be split.
            if wanted is None or row.count(" ") < dim or row[: row.index(" ")] in wanted:
                word, vector = _row(row, dim)
                if wanted is None or word in wanted:
                    yield word, vector
        except FormatError as error:
            raise error.at(f"{source.name}:{number}") from None


def _dim(row: str) -> int:
    dim = max(1, row.count(" "))
    if dim > _MAX_DIM:
        raise FormatError(f"found {dim:,} numbers, expected at most {_MAX_DIM:,}")
    return dim


def _row(row: str, dim: int) -> tuple[str, np.ndarray]:
    word, *fields = row.rsplit(" ", dim)
    # A word may contain spaces; if its last field is a number, the line has too many numbers.
    more = " " in word and _is_number(word.rsplit(" ", 1)[1])
    if len(fields) < dim or more:
        raise FormatError(f"expected a word and {dim} numbers, got {row.count(' ')} numbers")
    try:
        return word, np.array(list(map(float, fields)), dtype=np.float32)
    except ValueError as error:
        raise FormatError(f"expected a word and {dim} numbers, but {error}") from None


def _binary(
    source: Source, header: _Header, wanted: Collection[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    size = header.dim * _FLOAT_BYTES
    with source.binary() as stream:
        stream.readline(_CHUNK)
        for number, (raw, numbers) in enumerate(_binary_records(stream.read, size), start=1):
            if len(raw) > _CHUNK:
                what = f"vector {number} has a word of more than {_CHUNK >> 20} MiB"
                raise FormatError(f"{what}, which is too long to read", source.name)
            if numbers is None:
                what = f"the file ends in vector {number} of {header.count}"
                raise FormatError(f"{what}, expected {size} bytes of numbers", source.name)
            word = raw.decode("utf-8", "replace")
            if wanted is None or word in wanted:
                yield word, np.frombuffer(numbers, dtype="<f4").astype(np.float32)
            if number == header.count:
                return


def _binary_records(
    read: Callable[[int], bytes], size: int
) -> Iterator[tuple[bytes, bytes | None]]:
    """Words with their numbers; None if the file ends first, or the word has no end."""
    buffer, position = b"", 0
    while True:
        space = buffer.find(b" ", position)
        end = space + 1 + size
        if space < 0 or end > len(buffer):
            is_endless = space < 0 and len(buffer) - position > _CHUNK
            chunk = b"" if is_endless else read(max(_CHUNK, size))
            if not chunk:
                yield buffer[position:], None
                return
            buffer, position = buffer[position:] + chunk, 0
            continue
        # Some writers end each vector with a line feed, which is then before the next word.
        yield buffer[position:space].lstrip(b"\n"), buffer[space + 1 : end]
        position = end
