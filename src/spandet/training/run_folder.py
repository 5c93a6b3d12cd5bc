"""The folder of a run: checks before a start or resume, and the files that a run writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import torch
from safetensors import SafetensorError

from spandet.config import read_json
from spandet.errors import TrainingError, UsageError
from spandet.formats.locking import is_main_process, one_writer
from spandet.formats.target import Target
from spandet.training.checkpoint import (
    CHECKPOINT,
    Learner,
    RunState,
    Saved,
    has_checkpoint,
    read_newest,
    reason,
    write_checkpoint,
)
from spandet.training.log import Log
from spandet.training.summary import RUN

Identity = Mapping[str, Any]
"""Settings and digests of the data: equal identities give equal results."""


class Saveable(Protocol):
    """A model that can write itself into a folder."""

    def save_pretrained(self, folder: Path, /) -> None:
        """Write the model as it is now."""


class RunFolder:
    """Writes log, checkpoints and model of a run. Processes without a log write nothing."""

    def __init__(self, path: Path, model: Saveable, learner: Learner, log: Log | None) -> None:
        self.path = path
        self._model = model
        self._learner = learner
        self._log = log
        self._last_checkpoint = monotonic()

    def log(self, kind: str, step: int, entry: Mapping[str, Any]) -> None:
        """Add a line to the log."""
        if self._log is not None:
            self._log.write(kind, step, entry)

    def checkpoint(self, state: RunState) -> None:
        """Write a checkpoint."""
        if self._log is not None:
            state.log_bytes = self._log.size()
            write_checkpoint(self.path / CHECKPOINT, self._learner, state)
        self._last_checkpoint = monotonic()

    def is_checkpoint_due(self, minutes: float) -> bool:
        """Whether the last checkpoint was written at least this many minutes ago."""
        return monotonic() - self._last_checkpoint >= 60 * minutes

    def save_model(self) -> None:
        """Write the model as it is now."""
        if self._log is not None:
            save_model(self._model, self.path)

    def last_checkpoint(self) -> str:
        """Where the last checkpoint is, as the end of an error message."""
        path = self.path / CHECKPOINT
        return f"; the last good state is in {path}" if path.exists() else ""


def save_model(model: Saveable, folder: Path) -> None:
    """Write a model folder.

    Raises:
        TrainingError: it cannot be written, for instance because the disk is full.
    """
    try:
        model.save_pretrained(folder)
    except (OSError, SafetensorError, UsageError) as error:
        raise TrainingError(
            f"cannot write the model to {folder}: {reason(error)}; make room and resume"
        ) from error


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock the folder of a run, and restore torch's global random generators afterwards."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with (
        one_writer(folder) if is_main_process() else nullcontext(),
        torch.random.fork_rng(devices),
    ):
        yield


def check_folder(
    folder: Path, *, resume: bool, started: Sequence[str], results: Sequence[str], holds: str
) -> None:
    """Check that a run may start in a folder, or that there is one to resume.

    Args:
        folder: Of the run; it need not exist.
        resume: Whether a run is to be resumed.
        started: Files of which a run to resume has at least one.
        results: Files that a new run would overwrite.
        holds: What such files are, for the error message.

    Raises:
        UsageError: the folder cannot be used.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a folder for the run")
    if resume and not any((folder / name).exists() for name in started):
        raise UsageError(f"there is no run in {folder} to resume")
    if not resume and any((folder / name).exists() for name in results):
        raise UsageError(
            f"{folder} holds {holds} already: resume it (--resume) or name another folder"
        )


def identity_of_finished(folder: Path) -> dict[str, Any] | None:
    """The identity of a run that has reached its end; None if it has not.

    Raises:
        UsageError: run.json is damaged.
    """
    path = folder / RUN
    if not path.exists() or has_checkpoint(folder):
        return None
    summary = read_json(path)
    if not isinstance(summary, dict) or not isinstance(summary.get("identity"), dict):
        raise UsageError(f"{path} is damaged: it does not identify its run")
    return dict(summary["identity"])


def read_resumed(folder: Path, note: Callable[[str], None]) -> Saved | None:
    """The checkpoint to resume from; None if the run had not written one.

    Args:
        folder: Of the run.
        note: Shows a message.
    """
    if has_checkpoint(folder):
        return read_newest(folder, note)
    note("no checkpoint had been written: starting from the beginning")
    return None


def check_identity(before: Identity, now: Identity, *, settings_file: str) -> None:
    """Check that a run is resumed with the same settings and data.

    Args:
        before: Of the run that was begun.
        now: Of the run that continues it.
        settings_file: In the folder of the run, for the error message.

    Raises:
        UsageError: settings or data differ.
    """
    old, new = _flat(before), _flat(now)
    names = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if not names:
        return
    shown = [f"{name} was {old.get(name)}, is {new.get(name)}" for name in names[:5]]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    raise UsageError(
        f"this is another run than the one to resume: {'; '.join(shown)}{more}. "
        f"Give the same settings ({settings_file} in the run's folder) and data, or another --out"
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        result.update(_flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value})
    return result


def write_text(folder: Path, name: str, text: str) -> None:
    """Write or replace a file of the run atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    with Target(str(folder / name)).text() as stream:
        stream.write(text)
