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


class DevScore(BaseModel):
    """How good the model was on dev after an epoch (0 to 1), at its best threshold."""

    precision: float
    recall: float
    f1: float
    threshold: float
    """The one with the highest F1."""
    f1_untuned: float
    """At the recipe's threshold."""


class EpochRecord(BaseModel):
    """What one epoch brought."""

    epoch: int
    """Counted from 1, as people do."""
    step: int
    losses: dict[str, float]
    dev: DevScore | None
    sentences_per_second: float
    seconds: float
    """Since the start of the run, pauses not counted."""


class LossSums(BaseModel):
    """Loss parts since some moment: sums and counts, so that their quotients are true means."""

    totals: dict[str, float] = Field(default_factory=dict)
    counts: dict[str, float] = Field(default_factory=dict)

    def add(self, other: LossSums) -> None:
        """Those of one more batch, say."""
        for name, total in other.totals.items():
            self.totals[name] = self.totals.get(name, 0.0) + total
            self.counts[name] = self.counts.get(name, 0.0) + other.counts[name]

    def means(self) -> dict[str, float]:
        """Each part per thing that it counts."""
        return {name: total / max(self.counts[name], 1.0) for name, total in self.totals.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {mean:g}" for name, mean in self.means().items())


class RunState(BaseModel):
    """How far a run is. Order, chance and learning rates follow from it and need no memory."""

    identity: dict[str, Any]
    """Recipe and data: what must be the same for the run to be the same."""
    epoch: int = 0
    """Epochs done."""
    position: int = 0
    """Batches done in the epoch that runs."""
    step: int = 0
    """Optimizer steps done."""
    epoch_losses: LossSums = Field(default_factory=LossSums)
    log_losses: LossSums = Field(default_factory=LossSums)
    """Since the last line of the log."""
    history: list[EpochRecord] = Field(default_factory=list)
    best: int | None = None
    """The best epoch so far, counted from 1."""
    seconds: float = 0.0
    log_bytes: int = 0
    """How much of the log belongs to this state."""
    scaler: dict[str, Any] | None = None
    """Of fp16 arithmetic."""

    @property
    def best_f1(self) -> float | None:
        """On dev, of the best epoch, at its best threshold."""
        record = self.history[self.best - 1] if self.best else None
        return record.dev.f1 if record and record.dev else None


CHECKPOINT = "checkpoint.safetensors"
BEFORE = "checkpoint.before.safetensors"
"""The one before the newest."""

_MODEL, _OPTIMIZER = "model/", "optimizer/"
_FACTS, _DIGEST = "spandet", "sha256"
_DRAFTS = ".checkpoint.part"


@dataclass(frozen=True)
class Learner:
    """What changes while learning: weights, and what the optimizer remembers of them."""

    modules: nn.Module
    optimizer: Optimizer

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name."""
        weights = self.modules.state_dict()
        memory = optimizers.state_of(self.optimizer, self._names())
        return {
            **{_MODEL + name: tensor for name, tensor in weights.items()},
            **{_OPTIMIZER + name: tensor for name, tensor in memory.items()},
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what `tensors` gave."""
        self.modules.load_state_dict(_under(_MODEL, tensors))
        optimizers.restore(self.optimizer, _under(_OPTIMIZER, tensors), self._names())

    def _names(self) -> dict[nn.Parameter, str]:
        return {parameter: name for name, parameter in self.modules.named_parameters()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


class DamagedCheckpointError(UsageError):
    """A checkpoint that is not as it was written."""


def write_checkpoint(path: Path, learner: Learner, state: RunState) -> None:
    """Replace the checkpoint, and keep the old one under the name `BEFORE`.

    Whatever happens, the old or the new one is there, complete.

    Raises:
        TrainingError: it cannot be written, because the disk is full, say.
    """
    # A folder of its own, because a save that is killed leaves a file with a random name.
    drafts = path.with_name(_DRAFTS)
    try:
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir()
        draft = drafts / path.name
        tensors, facts = _separate(learner.tensors()), state.model_dump_json()
        metadata = {_FACTS: facts, _DIGEST: digest_of(facts, tensors)}
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
        shutil.rmtree(drafts, ignore_errors=True)


def remove_checkpoint(path: Path) -> None:
    """Forget it, and what a killed run may have left beside it."""
    # The newest goes last: as long as it is there, the run is not over.
    for each in (path.with_name(BEFORE), path):
        each.unlink(missing_ok=True)
    shutil.rmtree(path.with_name(_DRAFTS), ignore_errors=True)


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read."""

    path: Path
    tensors: Mapping[str, Tensor]
    state: RunState

    def make_newest(self) -> None:
        """Let it replace a damaged one, which else would replace it in turn."""
        self.path.replace(self.path.with_name(CHECKPOINT))


def read_checkpoint(path: Path) -> Saved:
    """The tensors and the state of a checkpoint.

    Raises:
        UsageError: there is none.
        DamagedCheckpointError: it cannot be read, is not one of ours, or not as it was written.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        facts = metadata[_FACTS]
        if metadata.get(_DIGEST) != digest_of(facts, tensors):
            found = "differs" if _DIGEST in metadata else "is missing (older versions wrote none)"
            raise DamagedCheckpointError(f"{path} is damaged: its checksum {found}")
        return Saved(path, tensors, RunState.model_validate_json(facts))
    except FileNotFoundError:
        raise UsageError(f"{path.parent} has no checkpoint to resume from") from None
    except OSError as error:
        raise DamagedCheckpointError(f"cannot read {path}: {reason(error)}") from None
    except (SafetensorError, KeyError, ValidationError) as error:
        told = reason(error).split("\n")[0]
        raise DamagedCheckpointError(f"{path} is not a checkpoint of spandet ({told})") from None


def read_newest(folder: Path, note: Callable[[str], None]) -> Saved:
    """The newest checkpoint that is intact: the last, or the one before it.

    Args:
        folder: Of the run.
        note: Is told if it is not the last.

    Raises:
        UsageError: there is none.
    """
    newest, before = folder / CHECKPOINT, folder / BEFORE
    # Killed between two renames, a run leaves the one before alone; it is then the last.
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
    note(f"{damage}: going on from the one before it")
    return found


def has_checkpoint(folder: Path) -> bool:
    """Has the run in this folder written one?"""
    return (folder / CHECKPOINT).exists() or (folder / BEFORE).exists()


def digest_of(facts: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a state in JSON and of all tensors: names, types, shapes and numbers."""
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def reason(error: Exception) -> str:
    """What the system says, without the technicalities around it."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, each with memory of its own, as the format wants it."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        shared = tensor.untyped_storage().data_ptr() in seen
        result[name] = tensor.clone() if shared else tensor.contiguous()
        seen.add(tensor.untyped_storage().data_ptr())
    return result


def _sync_folder(folder: Path) -> None:
    """Make the new name last; not every system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
