"""What a run leaves on the disk while it runs. Only the main process writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from safetensors import SafetensorError

from spandet.errors import TrainingError, UsageError
from spandet.inference.recognizer import Recognizer
from spandet.training.checkpoint import CHECKPOINT, Learner, RunState, reason, write_checkpoint
from spandet.training.log import Log


class Keeper:
    """Keeps the log, the checkpoint and the best model; without a log, it keeps nothing."""

    def __init__(
        self, folder: Path, recognizer: Recognizer, learner: Learner, log: Log | None
    ) -> None:
        self.folder = folder
        self._recognizer = recognizer
        self._learner = learner
        self._log = log
        self._saved = monotonic()

    def log(self, kind: str, step: int, facts: Mapping[str, Any]) -> None:
        """One line of the diary."""
        if self._log is not None:
            self._log.write(kind, step, facts)

    def checkpoint(self, state: RunState) -> None:
        """Write down how far the run is."""
        if self._log is not None:
            state.log_bytes = self._log.size()
            write_checkpoint(self.folder / CHECKPOINT, self._learner, state)
        self._saved = monotonic()

    def is_due(self, minutes: float) -> bool:
        """Is the last checkpoint that old?"""
        return monotonic() - self._saved >= 60 * minutes

    def model(self) -> None:
        """Write the model as it is now: the best so far."""
        if self._log is not None:
            save_model(self._recognizer, self.folder)

    def last_good(self) -> str:
        """Where to find the state before a mishap, in words."""
        path = self.folder / CHECKPOINT
        return f"; the last good state is in {path}" if path.exists() else ""


def save_model(recognizer: Recognizer, folder: Path) -> None:
    """Write a model folder.

    Raises:
        TrainingError: it cannot be written, because the disk is full, say.
    """
    try:
        recognizer.save_pretrained(folder)
    except (OSError, SafetensorError, UsageError) as error:
        raise TrainingError(
            f"cannot write the model to {folder}: {reason(error)}; make room and resume"
        ) from error
