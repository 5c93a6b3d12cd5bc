"""The log of a run: log.jsonl, and TensorBoard files if a setting enables them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spandet.errors import MissingExtraError, TrainingError

LOG = "log.jsonl"

_logger = logging.getLogger("spandet")


class Log:
    """One JSON object per line. A resumed run first removes the lines after its checkpoint."""

    def __init__(self, folder: Path, *, size: int, step: int, tensorboard: bool) -> None:
        """Open the log.

        Args:
            folder: Of the run.
            size: Bytes to keep of an existing log.
            step: Optimizer steps done.
            tensorboard: Also write TensorBoard files.
        """
        # First, because the extra may be missing: then the existing log must stay as it is.
        self._board = _board(folder, step) if tensorboard else None
        self._path = folder / LOG
        self._stream = self._path.open("ab")
        self._stream.truncate(self._kept(size))
        self._repeat_step(step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        if self._board is not None:
            self._board.close()

    def _kept(self, size: int) -> int:
        """Bytes to keep: `size`, or the complete lines of a log that is shorter than that."""
        left = self._path.read_bytes()[:size]
        if len(left) == size:
            return size
        _logger.warning(
            "%s has %s bytes, expected %s: lines are lost, the run continues",
            *(self._path, f"{len(left):,}", f"{size:,}"),
        )
        return left.rfind(b"\n") + 1

    def write(self, kind: str, step: int, entry: Mapping[str, Any]) -> None:
        """Write a line and flush it."""
        line = json.dumps({"kind": kind, "step": step, **entry}, ensure_ascii=False)
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            raise TrainingError(f"cannot write {self._path}: {error.strerror}") from error
        self._write_scalars(kind, step, entry)

    def _write_scalars(self, kind: str, step: int, entry: Mapping[str, Any]) -> None:
        if self._board is not None:
            for name, value in _numbers(entry):
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def _repeat_step(self, step: int) -> None:
        """Write the lines of a step to TensorBoard again: purging removes whole steps only."""
        if self._board is not None:
            for line in read_log(self._path):
                if line["step"] == step:
                    self._write_scalars(line.pop("kind"), line.pop("step"), line)

    def size(self) -> int:
        """The size in bytes, after everything is written to the disk."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise TrainingError(f"cannot write {self._path}: {error.strerror}") from error
        return self._path.stat().st_size


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; damaged lines are skipped."""
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and {"kind", "step"} <= entry.keys():
            yield entry


def check_tensorboard() -> None:
    """Check that TensorBoard is installed.

    Raises:
        MissingExtraError: it is not.
    """
    _writer()


def _board(folder: Path, step: int) -> Any:
    return _writer()(str(folder / "tensorboard"), purge_step=step)


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(needs="training.tensorboard", extra="tensorboard") from None
    return SummaryWriter


def _numbers(entry: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in entry.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            found.append((prefix + key, float(value)))
    return found
