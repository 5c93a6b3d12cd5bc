"""Checkpoints: everything a run needs to continue, in one safetensors file, replaced atomically.

The file has a checksum of all its contents. The last two are kept: if the newest is damaged, the
run continues from the one before.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from spandet.errors import TrainingError, UsageError
from spandet.training import optimizer as optimizers

CHECKPOINT = "checkpoint.safetensors"
BEFORE = "checkpoint.before.safetensors"
"""The checkpoint before the newest."""

_MODEL, _OPTIMIZER = "model/", "optimizer/"
_STATE, _DIGEST = "spandet", "sha256"
_DRAFT_FOLDER = ".checkpoint.part"


class DevScore(BaseModel):
    """Scores on dev (0 to 1) at the threshold with the highest F1."""

    precision: float
    recall: float
    f1: float
    threshold: float
    f1_untuned: float
    """F1 at the recipe's threshold."""


class EpochRecord(BaseModel):
    """Losses, dev score and speed of an epoch."""

    epoch: int
    """Counted from 1."""
    step: int
    losses: dict[str, float]
    dev: DevScore | None
    sentences_per_second: float
    seconds: float
    """Since the start of the run, without the time between stop and resume."""


class LossSums(BaseModel):
    """Sums and counts of the parts of a loss over some batches, for exact means."""

    totals: dict[str, float] = Field(default_factory=dict)
    counts: dict[str, float] = Field(default_factory=dict)

    def add(self, other: LossSums) -> None:
        """Add the sums and counts of further batches."""
        for name, total in other.totals.items():
            self.totals[name] = self.totals.get(name, 0.0) + total
            self.counts[name] = self.counts.get(name, 0.0) + other.counts[name]

    def means(self) -> dict[str, float]:
        """The mean of each part."""
        return {name: total / max(self.counts[name], 1.0) for name, total in self.totals.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {mean:g}" for name, mean in self.means().items())


class RunState(BaseModel):
    """The progress of a run. Order, random numbers and learning rates are computed from it."""

    identity: dict[str, Any]
    """Settings and digests of the data: equal identities give equal results."""
    epoch: int = 0
    """Epochs done."""
    position: int = 0
    """Batches done in the current epoch."""
    step: int = 0
    """Optimizer steps done."""
    epoch_losses: LossSums = Field(default_factory=LossSums)
    log_losses: LossSums = Field(default_factory=LossSums)
    """Losses since the last log line for steps."""
    history: list[EpochRecord] = Field(default_factory=list)
    best: int | None = None
    """The best epoch so far, counted from 1."""
    seconds: float = 0.0
    log_bytes: int = 0
    """Size of the log when this state was written."""
    scaler: dict[str, Any] | None = None
    """State of the gradient scaler in fp16."""

    @property
    def best_f1(self) -> float | None:
        """F1 on dev of the best epoch."""
        record = self.history[self.best - 1] if self.best else None
        return record.dev.f1 if record and record.dev else None


@dataclass(frozen=True)
class Learner:
    """The weights and the optimizer state, which training changes."""

    modules: nn.Module
    optimizer: Optimizer

    def tensors(self) -> dict[str, Tensor]:
        """Weights and optimizer state by name."""
        weights = self.modules.state_dict()
        state = optimizers.state_of(self.optimizer, self._names())
        return {
            **{_MODEL + name: tensor for name, tensor in weights.items()},
            **{_OPTIMIZER + name: tensor for name, tensor in state.items()},
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what `tensors` returned."""
        self.modules.load_state_dict(_with_prefix(_MODEL, tensors))
        optimizers.restore(self.optimizer, _with_prefix(_OPTIMIZER, tensors), self._names())

    def _names(self) -> dict[nn.Parameter, str]:
        return {parameter: name for name, parameter in self.modules.named_parameters()}


def _with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


class DamagedCheckpointError(UsageError):
    """A checkpoint whose contents differ from what was written."""


def write_checkpoint(path: Path, learner: Learner, state: RunState) -> None:
    """Replace the checkpoint, and keep the old one under the name `BEFORE`.

    If this is interrupted, at least one complete checkpoint exists.

    Raises:
        TrainingError: it cannot be written, for instance because the disk is full.
    """
    # In a separate folder, because a killed save leaves a file with a random name.
    folder = path.with_name(_DRAFT_FOLDER)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        draft = folder / path.name
        tensors, state_json = _separate(learner.tensors()), state.model_dump_json()
        metadata = {_STATE: state_json, _DIGEST: digest_of(state_json, tensors)}
        save_file(tensors, draft, metadata=metadata)
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        if path.exists():
            path.replace(path.with_name(BEFORE))
        draft.replace(path)
        _sync_folder(path.parent)
    except (OSError, SafetensorError) as error:
        before = "; the one before it is intact" if has_checkpoint(path.parent) else ""
        raise TrainingError(
            f"cannot write the checkpoint {path}: {reason(error)}{before}"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_checkpoint(path: Path) -> None:
    """Delete the checkpoints, and the drafts of a killed run."""
    # The newest last: as long as it exists, the run is not finished.
    for each in (path.with_name(BEFORE), path):
        each.unlink(missing_ok=True)
    shutil.rmtree(path.with_name(_DRAFT_FOLDER), ignore_errors=True)


@dataclass(frozen=True)
class Saved:
    """A checkpoint in memory."""

    path: Path
    tensors: Mapping[str, Tensor]
    state: RunState

    def make_newest(self) -> None:
        """Rename it to `CHECKPOINT`, so that a damaged newer one does not become `BEFORE`."""
        self.path.replace(self.path.with_name(CHECKPOINT))


def read_checkpoint(path: Path) -> Saved:
    """Read a checkpoint.

    Raises:
        UsageError: the file does not exist.
        DamagedCheckpointError: it cannot be read, is no checkpoint, or its checksum differs.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        state_json = metadata[_STATE]
        if metadata.get(_DIGEST) != digest_of(state_json, tensors):
            found = "differs" if _DIGEST in metadata else "is missing (older versions wrote none)"
            raise DamagedCheckpointError(f"{path} is damaged: its checksum {found}")
        return Saved(path, tensors, RunState.model_validate_json(state_json))
    except FileNotFoundError:
        raise UsageError(f"{path.parent} has no checkpoint to resume from") from None
    except OSError as error:
        raise DamagedCheckpointError(f"cannot read {path}: {reason(error)}") from None
    except (SafetensorError, KeyError, ValidationError) as error:
        why = reason(error).split("\n")[0]
        raise DamagedCheckpointError(f"{path} is not a checkpoint of spandet ({why})") from None


def read_newest(folder: Path, note: Callable[[str], None]) -> Saved:
    """Read the newest intact checkpoint: the last one, or the one before it.

    Args:
        folder: Of the run.
        note: Called with a message if the last one is damaged.

    Raises:
        UsageError: there is no intact checkpoint.
    """
    newest, before = folder / CHECKPOINT, folder / BEFORE
    # A run that is killed between the two renames of a save leaves `BEFORE` only.
    if not newest.exists() and before.exists():
        return read_checkpoint(before)
    try:
        return read_checkpoint(newest)
    except DamagedCheckpointError as error:
        if not before.exists():
            raise
        damage = error
    try:
        found = read_checkpoint(before)
    except DamagedCheckpointError as error:
        raise UsageError(f"no checkpoint is intact: {damage}; {error}") from None
    note(f"{damage}: continuing from the one before it")
    return found


def has_checkpoint(folder: Path) -> bool:
    """Whether the run in this folder has written a checkpoint."""
    return (folder / CHECKPOINT).exists() or (folder / BEFORE).exists()


def digest_of(state_json: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a state in JSON and of all tensors: names, types, shapes and values."""
    digest = hashlib.sha256(state_json.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def reason(error: Exception) -> str:
    """The message of an error, without the error number of the operating system."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors that share memory, which safetensors does not allow."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        shared = tensor.untyped_storage().data_ptr() in seen
        result[name] = tensor.clone() if shared else tensor.contiguous()
        seen.add(tensor.untyped_storage().data_ptr())
    return result


def _sync_folder(folder: Path) -> None:
    """Write the renames to the disk; not every system can open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
