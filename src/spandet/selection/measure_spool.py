"""Measures of passages on disk: a line that identifies the run, then blocks with checksums."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from spandet.errors import UsageError
from spandet.selection.fingerprints import SKETCH

_ROW = np.dtype([("score", "<f8"), ("bytes", "<i8"), ("fault", "u1"), ("sketch", "<u8", (SKETCH,))])
_BLOCK_ROWS = 500


class MeasureSpool:
    """The file from which an interrupted selection is resumed."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path = path
        self._head = f"spandet select {identity}\n".encode()

    def open(self, *, resume: bool) -> NDArray[np.void]:
        """The rows of an interrupted run; none for a new one.

        Raises:
            UsageError: there is a spool and `resume` is off, or it is that of another run.
        """
        if not self._path.exists():
            return np.empty(0, _ROW)
        if not resume:
            raise UsageError(
                f"{self._path} is from an interrupted run: continue it with --resume, or remove it"
            )
        if not self._path.read_bytes().startswith(self._head):
            raise UsageError(f"{self._path} belongs to another run: other files or other settings")
        rows, end = self._blocks()
        os.truncate(self._path, end)  # without an incomplete last block
        return rows

    def extend(self, measured: Iterable[tuple[object, ...]]) -> None:
        """Append rows, a block at a time."""
        with self._path.open("ab") as out:
            if not out.tell():
                out.write(self._head)
            block: list[tuple[object, ...]] = []
            for row in measured:
                block.append(row)
                if len(block) == _BLOCK_ROWS:
                    out.write(_packed(block))
                    out.flush()
                    block = []
            if block:
                out.write(_packed(block))

    def read(self) -> NDArray[np.void]:
        """All rows.

        Raises:
            UsageError: the file was changed during the run.
        """
        rows, end = self._blocks()
        if end != self._path.stat().st_size:
            raise UsageError(f"{self._path} is damaged: remove it and start again")
        return rows

    def remove(self) -> None:
        """Delete the file: the output is complete."""
        self._path.unlink()

    def _blocks(self) -> tuple[NDArray[np.void], int]:
        """The rows of all intact blocks, and the end of the last one."""
        data, place = self._path.read_bytes(), len(self._head)
        blocks = [np.empty(0, _ROW)]
        while place + 8 <= len(data):
            count = int.from_bytes(data[place : place + 4], "little")
            checksum = int.from_bytes(data[place + 4 : place + 8], "little")
            end = place + 8 + count * _ROW.itemsize
            body = data[place + 8 : end]
            if end > len(data) or crc32(body) != checksum:
                break
            blocks.append(np.frombuffer(body, _ROW))
            place = end
        return np.concatenate(blocks), place


def _packed(rows: list[tuple[object, ...]]) -> bytes:
    body: bytes = np.array([tuple(row) for row in rows], dtype=_ROW).tobytes()
    return len(rows).to_bytes(4, "little") + crc32(body).to_bytes(4, "little") + body
