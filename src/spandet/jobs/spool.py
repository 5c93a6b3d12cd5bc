"""The spool of a job: its results so far, in a JSONL file from which a killed job can be resumed.

The first line describes the job. Then come predicted documents (native JSONL) and skipped ones, and
after each window of them a checkpoint line, `{"done": 1234, "sha256": "…"}`, with the checksum of
everything before it, including earlier checkpoint lines. Lines after the last one are dropped, so a
resumed job continues at the start of a window, and its batches are those of an uninterrupted job. A
file that does not match its checksums is damaged and not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from spandet.errors import UsageError
from spandet.formats.jsonl import document_of, record_of
from spandet.formats.records import dump_json, parse_json
from spandet.inference.bad_documents import Entry, Skipped
from spandet.text import Document

if TYPE_CHECKING:
    from hashlib import _Hash

_VERSION = 2
_HEADER, _CHECKPOINT = b'{"spool": ', b'{"done": '


@dataclass(frozen=True, slots=True)
class _Checked:
    """The lines of a window whose checksum was verified; the header is a window without lines."""

    lines: list[bytes]
    done: int
    """Number of documents up to the end of the window."""
    end: int
    """Number of bytes up to the end of the window, including its checkpoint line."""
    digest: _Hash
    """Checksum of these bytes."""


class Spool:
    """The results so far. Created by `begin` or `resume`; the file is open until `close`."""

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path = path
        self.done = 0
        """Number of documents in complete windows, including skipped ones."""
        self._file = file
        self._end = 0
        self._digest = hashlib.sha256()

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """Create an empty spool, replacing an existing one.

        Raises:
            UsageError: it cannot be written.
        """
        spool = cls(path, _opened(path, "w+"))
        with spool._closed_on_error():
            spool._write(_line({"spool": _VERSION, **header}))
        return spool

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """Open the spool of an interrupted job; an incomplete window is dropped.

        Raises:
            UsageError: it belongs to another job (names the first difference), or it is damaged.
        """
        spool = cls(path, _opened(path, "r+"))
        with spool._closed_on_error():
            first = spool._first_line()
            if not first.endswith(b"\n") and _HEADER.startswith(first[: len(_HEADER)]):
                spool.close()  # the job was killed before its first line was written
                return cls.begin(path, header)
            wanted = {"spool": _VERSION, **header}
            if first != _line(wanted):
                raise UsageError(_difference(path, first, wanted))
            for window in spool._windows():
                spool.done, spool._end, spool._digest = window.done, window.end, window.digest
            spool._file.truncate(spool._end)
        return spool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, entries: Iterable[Entry]) -> None:
        """Append the results of one window, completely or not at all.

        Raises:
            UsageError: the file cannot be written, or another process has changed its size.
        """
        lines = [_line(_record_of(entry)) for entry in entries]
        data, done = b"".join(lines), self.done + len(lines)
        digest = self._digest.copy()
        digest.update(data)
        self._write(data + _checkpoint(done, digest))
        self.done = done

    def entries(self) -> Iterator[Entry]:
        """The entries of all complete windows, in order.

        Raises:
            UsageError: the file has changed since it was written.
        """
        seen = None
        for window in self._windows():
            seen = window.end, window.digest.digest()
            for line in window.lines:
                yield _entry_of(parse_json(line.decode()))
        if seen != (self._end, self._digest.digest()) or self._end != self._size():
            raise self._damaged()

    def close(self) -> None:
        """Close the file and keep it, so that the job can be resumed."""
        self._file.close()

    def remove(self) -> None:
        """Remove the file, unless another file has taken its name."""
        own = os.fstat(self._file.fileno())
        self.close()
        if self.path.exists() and os.path.samestat(own, self.path.stat()):
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.close()
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def _first_line(self) -> bytes:
        with self._reader() as reader:
            return reader.readline()

    def _windows(self) -> Iterator[_Checked]:
        """Read the header and the complete windows, and verify their checksums.

        Raises:
            UsageError: a checksum does not match.
        """
        digest, done, end = hashlib.sha256(), 0, 0
        with self._reader() as reader:
            lines: list[bytes] = []
            for number, line in enumerate(reader):
                is_checkpoint = line.startswith(_CHECKPOINT) and line.endswith(b"\n")
                if is_checkpoint and line != _checkpoint(done + len(lines), digest):
                    raise self._damaged()
                end += len(line)
                digest.update(line)
                if number == 0 or is_checkpoint:
                    done += len(lines)
                    yield _Checked(lines, done, end, digest.copy())
                    lines = []
                else:
                    lines.append(line)

    def _reader(self) -> BinaryIO:
        """Read the open file from its beginning, even if its name now belongs to another file."""
        reader = os.fdopen(os.dup(self._file.fileno()), "rb")
        reader.seek(0)
        return reader

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _write(self, data: bytes) -> None:
        if self._size() != self._end:
            raise self._damaged()
        try:
            self._file.seek(self._end)
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None
        self._digest.update(data)
        self._end += len(data)

    def _damaged(self) -> UsageError:
        return UsageError(
            f"{self.path} is damaged: it has changed since it was written; "
            f"start again with --overwrite"
        )


def _opened(path: Path, mode: str) -> io.FileIO:
    try:
        return io.FileIO(path, mode)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _line(record: Mapping[str, Any]) -> bytes:
    return (dump_json(record) + "\n").encode()


def _checkpoint(done: int, digest: _Hash) -> bytes:
    return _line({"done": done, "sha256": digest.hexdigest()})


def _record_of(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Document):
        return record_of(entry)
    return {
        "skipped": entry.problem,
        "is_usage": entry.is_usage,
        "document": record_of(entry.document),
    }


def _entry_of(record: Mapping[str, Any]) -> Entry:
    if "skipped" not in record:
        return document_of(record)
    return Skipped(document_of(record["document"]), record["skipped"], record["is_usage"])


def _difference(path: Path, first: bytes, wanted: Mapping[str, Any]) -> str:
    """Describe why a spool with this first line does not belong to the job."""
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "spool" not in found:
        return f"{path} is not the spool of a prediction, or damaged: remove it, or --overwrite"
    if found["spool"] != _VERSION:
        return (
            f"{path} is of another version of spandet (its format is {found['spool']}, expected "
            f"{_VERSION}): start again with --overwrite"
        )
    for key, value in json.loads(json.dumps(wanted)).items():
        if found.get(key) == value:
            continue
        if key == "digests" and (name := _changed(found.get(key), value)):
            return f"{name} has changed since {path} was created: start again with --overwrite"
        return (
            f"{path} was created with {key} {found.get(key)!r}, and this is {value!r}: "
            f"repeat the same command, or start again with --overwrite"
        )
    return f"{path} is damaged: start again with --overwrite"


def _changed(found: object, digests: Mapping[str, str]) -> str | None:
    """The first input whose checksum has changed."""
    if not isinstance(found, dict):
        return None
    return next((name for name, digest in digests.items() if found.get(name) != digest), None)
