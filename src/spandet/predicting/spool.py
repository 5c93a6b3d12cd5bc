"""The results of a job while it runs: a JSONL file beside its output that survives a kill.

The first line says whose results these are. Then come documents (native JSONL), and after each
window of them a mark: `{"done": 1234}`. What follows the last mark does not count, so that a
resumed job goes on at the border of a window, and its batches are those of a job never stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spandet.errors import FormatError, UsageError
from spandet.formats.jsonl import document_of, record_of
from spandet.formats.records import dump_json, parse_json
from spandet.text import Document

SUFFIX = ".spool"
_VERSION = 1
_MARK = b'{"done": '


class Spool:
    """Results so far. Make one with `begin` or `resume`."""

    def __init__(self, path: Path, done: int) -> None:
        self.path = path
        self.done = done
        """Documents that are safe."""

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """An empty spool, in place of what was there.

        Raises:
            UsageError: it cannot be written.
        """
        spool = cls(path, 0)
        spool._write({"spool": _VERSION, **header}, mode="wb")
        return spool

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Spool:
        """The spool of an interrupted job; what was not finished is dropped.

        Raises:
            UsageError: it belongs to another job; names the first thing that differs.
        """
        safe = done = 0
        try:
            with path.open("r+b") as stream:
                first = stream.readline()
                if not first.endswith(b"\n"):  # it died before it began
                    return cls.begin(path, header)
                _check(path, first, {"spool": _VERSION, **header})
                safe = position = len(first)
                for line in stream:
                    position += len(line)
                    if line.startswith(_MARK) and line.endswith(b"\n"):
                        safe, done = position, int(json.loads(line)["done"])
                stream.truncate(safe)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        return cls(path, done)

    def add(self, documents: Iterable[Document]) -> None:
        """Keep the results of one window: all of them, or none."""
        records = [record_of(document) for document in documents]
        self._write(*records, {"done": self.done + len(records)}, mode="ab")
        self.done += len(records)

    def documents(self) -> Iterator[Document]:
        """Everything that is safe, in order."""
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1 or line.startswith(_MARK):
                    continue
                try:
                    yield document_of(parse_json(line.decode()))
                except FormatError as error:
                    raise error.at(f"{self.path}:{number}") from None

    def remove(self) -> None:
        """Nobody needs it any more."""
        self.path.unlink(missing_ok=True)

    def _write(self, *records: Mapping[str, Any], mode: str) -> None:
        data = "".join(dump_json(record) + "\n" for record in records).encode()
        try:
            with self.path.open(mode) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None


def _check(path: Path, first: bytes, wanted: Mapping[str, Any]) -> None:
    """Is this the header of the job that is wanted?"""
    try:
        found = json.loads(first)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "spool" not in found:
        raise UsageError(f"{path} is not the spool of a prediction: remove it, or --overwrite")
    for key, value in json.loads(json.dumps(wanted)).items():
        if found.get(key) != value:
            raise UsageError(
                f"{path} was begun with {key} {found.get(key)!r}, and this is {value!r}: "
                f"repeat the command as it was, or begin anew with --overwrite"
            )
