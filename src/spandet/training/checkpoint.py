"""Checkpoints: all that a run needs to go on, in one safetensors file, written whole or not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from spandet.errors import UsageError
from spandet.training import optimizer as optimizers
from spandet.training.errors import TrainingError
from spandet.training.state import RunState

CHECKPOINT = "checkpoint.safetensors"

_MODEL, _OPTIMIZER = "model/", "optimizer/"
_FACTS = "spandet"
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


def write_checkpoint(path: Path, learner: Learner, state: RunState) -> None:
    """Replace the checkpoint; whatever happens, the old or the new one is there, complete.

    Raises:
        TrainingError: it cannot be written, because the disk is full, say.
    """
    # A folder of its own, because a save that is killed leaves a file with a random name.
    drafts = path.with_name(_DRAFTS)
    try:
        shutil.rmtree(drafts, ignore_errors=True)
        drafts.mkdir()
        draft = drafts / path.name
        save_file(_separate(learner.tensors()), draft, metadata={_FACTS: state.model_dump_json()})
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except (OSError, SafetensorError) as error:
        before = "; the one before it is intact" if path.exists() else ""
        raise TrainingError(
            f"cannot write the checkpoint {path}: {reason(error)}{before}"
        ) from error
    finally:
        shutil.rmtree(drafts, ignore_errors=True)


def remove_checkpoint(path: Path) -> None:
    """Forget it, and what a killed run may have left beside it."""
    path.unlink(missing_ok=True)
    shutil.rmtree(path.with_name(_DRAFTS), ignore_errors=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], RunState]:
    """The tensors and the state of a checkpoint.

    Raises:
        UsageError: there is none, or it is not one of ours.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            facts = (stored.metadata() or {})[_FACTS]
            state = RunState.model_validate_json(facts)
            return {name: stored.get_tensor(name) for name in stored.keys()}, state  # noqa: SIM118
    except FileNotFoundError:
        raise UsageError(f"{path.parent} has no checkpoint to resume from") from None
    except (OSError, SafetensorError, KeyError, ValidationError) as error:
        raise UsageError(f"{path} is not a checkpoint of spandet ({reason(error)})") from None


def check_identity(known: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse to go on with another recipe or other data.

    Raises:
        UsageError: names what differs.
    """
    before, now = _flat(known), _flat(identity)
    names = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if not names:
        return
    told = [f"{name} was {before.get(name)}, is {now.get(name)}" for name in names[:5]]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    raise UsageError(
        f"this is another run than the one to resume: {'; '.join(told)}{more}. "
        f"Give the same recipe (recipe.toml in the run's folder) and data, or another --out"
    )


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


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        result.update(_flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value})
    return result
