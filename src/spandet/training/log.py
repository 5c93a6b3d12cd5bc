"""The run's diary: log.jsonl always, TensorBoard's files where somebody wants them."""

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
    """One JSON object per line. A resumed run cuts what came after its checkpoint."""

    def __init__(self, folder: Path, *, size: int, step: int, tensorboard: bool) -> None:
        """Open the log.

        Args:
            folder: Of the run.
            size: How many bytes of an older log belong to this run.
            step: Where the run stands.
            tensorboard: Write TensorBoard's files too.
        """
        # First what may be missing, so that nothing is cut in vain.
        self._board = _board(folder, step) if tensorboard else None
        self._path = folder / LOG
        self._stream = self._path.open("ab")
        self._stream.truncate(self._kept(size))
        self._show_again(step)

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
        """How much to keep: `size`, or the whole lines of what is left of it."""
        left = self._path.read_bytes()[:size]
        if len(left) == size:
            return size
        _logger.warning(
            "%s has %s bytes, expected %s of the run before: lines are lost, the run goes on",
            *(self._path, f"{len(left):,}", f"{size:,}"),
        )
        return left.rfind(b"\n") + 1

    def write(self, kind: str, step: int, facts: Mapping[str, Any]) -> None:
        """One line, at once on its way to the disk."""
        line = json.dumps({"kind": kind, "step": step, **facts}, ensure_ascii=False)
        try:
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            raise TrainingError(f"cannot write {self._path}: {error.strerror}") from error
        self._show(kind, step, facts)

    def _show(self, kind: str, step: int, facts: Mapping[str, Any]) -> None:
        if self._board is not None:
            for name, value in _numbers(facts):
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def _show_again(self, step: int) -> None:
        """TensorBoard forgets whole steps only: of the last one, show what belongs to the run."""
        if self._board is not None:
            for line in read_log(self._path):
                if line["step"] == step:
                    self._show(line.pop("kind"), line.pop("step"), line)

    def size(self) -> int:
        """How long it is, once everything is on the disk."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise TrainingError(f"cannot write {self._path}: {error.strerror}") from error
        return self._path.stat().st_size


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log, without damaged ones."""
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and {"kind", "step"} <= entry.keys():
            yield entry


def check_tensorboard() -> None:
    """Is there what writes TensorBoard's files?

    Raises:
        MissingExtraError: no; says how to install it.
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


def _numbers(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            found.append((prefix + key, float(value)))
    return found
