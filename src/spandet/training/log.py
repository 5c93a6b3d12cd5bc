"""The run's diary: log.jsonl always, TensorBoard's files where somebody wants them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spandet.errors import MissingExtraError
from spandet.training.errors import TrainingError

LOG = "log.jsonl"


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
        self._stream.truncate(min(size, self._path.stat().st_size))
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
            for line in map(json.loads, self._path.read_text(encoding="utf-8").splitlines()):
                if line["step"] == step:
                    self._show(line.pop("kind"), line.pop("step"), line)

    def size(self) -> int:
        """How long it is, once everything is on the disk."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise TrainingError(f"cannot write {self._path}: {error.strerror}") from error
        return self._path.stat().st_size


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(needs="training.tensorboard", extra="tensorboard") from None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step)


def _numbers(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float):
            found.append((prefix + key, float(value)))
    return found
