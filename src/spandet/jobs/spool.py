"""The results of a job while it runs: a JSONL file beside its output that survives a kill.

The first line says whose results these are. Then come documents (native JSONL) and those that were
passed over, and after each window of them a mark: `{"done": 1234, "sha256": "…"}`, with the
checksum of everything before it, earlier marks included. What follows the last mark does not count,
so that a resumed job goes on at the border of a window, and its batches are those of a job never
stopped. A file that does not fit its marks is damaged, and nothing of it is used.
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
_HEADER, _MARK = b'{"spool": ', b'{"done": '


@dataclass(frozen=True, slots=True)
class _Checked:
    """Lines that fit the mark after them; the header is such a window, without a mark."""

    lines: list[bytes]
    done: int
    """Documents up to here."""
    end: int
    """Bytes up to here, with the mark."""
    digest: _Hash
    """Of these bytes."""


class Spool:
    """Results so far. Make one with `begin` or `resume`; the file stays open until `close`."""

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path = path
        self.done = 0
        """Documents that are safe, with those that were passed over."""
        self._file = file
        self._end = 0
        self._digest = hashlib.sha256()

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """An empty spool, in place of what was there.

        Raises:
            UsageError: it cannot be written.
        """
        spool = cls(path, _opened(path, "w+"))
        with spool._closed_on_error():
            spool._write(_line({"spool": _VERSION, **header}))
        return spool

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """The spool of an interrupted job; what was not finished is dropped.

        Raises:
            UsageError: it belongs to another job (says what differs first), or it is damaged.
        """
        spool = cls(path, _opened(path, "r+"))
        with spool._closed_on_error():
            first = spool._first_line()
            if not first.endswith(b"\n") and _HEADER.startswith(first[: len(_HEADER)]):
                spool.close()  # it was killed before its first line was written
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
        """Keep the results of one window: all of them, or none.

        Raises:
            UsageError: the file cannot be written, or somebody else has changed its size.
        """
        lines = [_line(_record_of(entry)) for entry in entries]
        data, done = b"".join(lines), self.done + len(lines)
        digest = self._digest.copy()
        digest.update(data)
        self._write(data + _mark(done, digest))
        self.done = done

    def entries(self) -> Iterator[Entry]:
        """Everything that is safe, in order.

        Raises:
            UsageError: the file is no longer what was written.
        """
        seen = None
        for window in self._windows():
            seen = window.end, window.digest.digest()
            for line in window.lines:
                yield _entry_of(parse_json(line.decode()))
        if seen != (self._end, self._digest.digest()) or self._end != self._size():
            raise self._damaged()

    def close(self) -> None:
        """Keep the file for another run."""
        self._file.close()

    def remove(self) -> None:
        """Remove the file, unless its name is another file's by now."""
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
        """The header, and everything that fits its mark; a line without an end comes after these.

        Raises:
            UsageError: a mark does not fit what is before it.
        """
        digest, done, end = hashlib.sha256(), 0, 0
        with self._reader() as reader:
            lines: list[bytes] = []
            for number, line in enumerate(reader):
                is_mark = line.startswith(_MARK) and line.endswith(b"\n")
                if is_mark and line != _mark(done + len(lines), digest):
                    raise self._damaged()
                end += len(line)
                digest.update(line)
                if number == 0 or is_mark:
                    done += len(lines)
                    yield _Checked(lines, done, end, digest.copy())
                    lines = []
                else:
                    lines.append(line)

    def _reader(self) -> BinaryIO:
        """The file from its beginning: the one that is open, whatever has become of its name."""
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
            f"{self.path} is damaged: it is not what was written there; begin anew with --overwrite"
        )


def _opened(path: Path, mode: str) -> io.FileIO:
    try:
        return io.FileIO(path, mode)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _line(record: Mapping[str, Any]) -> bytes:
    return (dump_json(record) + "\n").encode()


def _mark(done: int, digest: _Hash) -> bytes:
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
    """Why a spool with this first line cannot be that of the job that is wanted."""
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "spool" not in found:
        return f"{path} is not the spool of a prediction, or damaged: remove it, or --overwrite"
    if found["spool"] != _VERSION:
        return (
            f"{path} is of another version of spandet (its format is {found['spool']}, expected "
            f"{_VERSION}): begin anew with --overwrite"
        )
    for key, value in json.loads(json.dumps(wanted)).items():
        if found.get(key) == value:
            continue
        if key == "digests" and (name := _changed(found.get(key), value)):
            return f"{name} is not what it was when {path} was begun: begin anew with --overwrite"
        return (
            f"{path} was begun with {key} {found.get(key)!r}, and this is {value!r}: "
            f"repeat the command as it was, or begin anew with --overwrite"
        )
    return f"{path} is damaged: begin anew with --overwrite"


def _changed(found: object, digests: Mapping[str, str]) -> str | None:
    """The first input that has another digest by now."""
    if not isinstance(found, dict):
        return None
    return next((name for name, digest in digests.items() if found.get(name) != digest), None)
