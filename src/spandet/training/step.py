"""One optimizer step: from the losses of batches to new weights, in one process or in several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs
from torch import Generator, Tensor, nn

from spandet.detectors import Detector
from spandet.encoding import Encoder, EncoderBatch
from spandet.errors import ConfigError
from spandet.inference.recognizer import Recognizer
from spandet.tensors import GoldSpans, Loss, to_device
from spandet.training.checkpoint import Learner, LossSums
from spandet.training.optimizer import build_optimizer, set_learning_rates
from spandet.training.recipe import TrainingSettings


class Objective(nn.Module):
    """Encoder and detector as one module, which is what processes synchronise."""

    def __init__(self, encoder: Encoder, detector: Detector) -> None:
        super().__init__()
        self.encoder = encoder
        self.detector = detector

    def forward(
        self, batch: EncoderBatch, gold: GoldSpans, chance: Sequence[Generator]
    ) -> dict[str, Loss]:
        """The parts of the loss, in full precision; every batch has all of them."""
        losses = self.detector(self.encoder(batch), gold, chance)
        return {name: Loss(loss.total.float(), loss.count.float()) for name, loss in losses.items()}


@dataclass(frozen=True)
class BatchLoss:
    """The loss of a batch over all processes."""

    objective: Tensor
    """To go backward from, on this process; the mean of all gradients is the batch's."""
    sums: LossSums
    ending: bool
    """Was any process asked to end?"""


def over_processes(
    losses: Mapping[str, Loss], accelerator: Accelerator, *, counted: bool, ending: bool
) -> BatchLoss:
    """Divide sums by the counts of all processes.

    Args:
        losses: Of this process's part.
        accelerator: Knows the other processes.
        counted: False for a process without a part of its own: it computes along for nothing.
        ending: Was this process asked to end?
    """
    names = list(losses)
    totals = torch.stack([losses[name].total for name in names]) * counted
    counts = torch.stack([losses[name].count for name in names]) * counted
    asked = torch.tensor([float(ending)], device=totals.device)
    sums = accelerator.reduce(torch.cat([totals.detach(), counts, asked]), reduction="sum")
    all_counts = sums[len(names) : -1]
    objective = (totals / all_counts.clamp(min=1)).sum() * accelerator.num_processes
    values = sums.tolist()
    return BatchLoss(
        objective,
        LossSums(
            totals=dict(zip(names, values[: len(names)], strict=True)),
            counts=dict(zip(names, values[len(names) : -1], strict=True)),
        ),
        ending=values[-1] > 0,
    )


def build_accelerator(settings: TrainingSettings) -> Accelerator:
    """The processes and devices that the launcher gave us; alone, the best device there is."""
    # Which parameters a batch does not touch (a frozen transformer, say) differs between batches.
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    # It keeps the precision of the first run of a program for ever; the processes may stay.
    AcceleratorState._reset_state()  # noqa: SLF001 (there is no other way)
    return Accelerator(
        mixed_precision=_precision(settings.precision),
        # Without this, processes on a machine that has only a CPU would not find each other.
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[unused],
    )


def _precision(wanted: str) -> str:
    if wanted == "fp16" and not torch.accelerator.is_available():
        raise ConfigError("[training] precision: fp16 needs a GPU, and there is none; try auto")
    if wanted != "auto":
        return "no" if wanted == "fp32" else wanted
    if not torch.cuda.is_available():
        return "no"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


class Engine:
    """The model, its optimizer, and the machinery of accelerate around them."""

    def __init__(
        self, recognizer: Recognizer, settings: TrainingSettings, accelerator: Accelerator
    ) -> None:
        self._settings = settings
        self._accelerator = accelerator
        objective = Objective(recognizer.encoder, recognizer.detector).to(accelerator.device)
        pretrained = [parameter for _, parameter in recognizer.encoder.pretrained_parameters()]
        optimizer = build_optimizer(objective, pretrained, settings)
        self.learner = Learner(recognizer.modules(), optimizer)
        self._objective, self._optimizer = accelerator.prepare(objective, optimizer)

    @property
    def process(self) -> int:
        """Which of the processes this is."""
        return int(self._accelerator.process_index)

    @property
    def processes(self) -> int:
        """How many share the work."""
        return int(self._accelerator.num_processes)

    @property
    def device(self) -> torch.device:
        """Where this process computes."""
        return torch.device(self._accelerator.device)

    def begin_step(self, *, step: int, at: float) -> None:
        """Set what a step depends on: chance by its number, learning rates by the epochs done."""
        # Dropout knows only the global generator. It is set for every step, so that a resumed run
        # meets the same chance without having to remember any.
        _seed(_number(self._settings.seed, step, self.process), self.device)
        set_learning_rates(self._optimizer, self._settings, at)
        self._objective.train()

    def portion(self, *, last: bool) -> AbstractContextManager[None]:
        """Around each batch of a step: processes exchange gradients only in the last one."""
        none: AbstractContextManager[None] = nullcontext()
        return none if last else self._accelerator.no_sync(self._objective)

    def loss(
        self,
        batch: EncoderBatch,
        gold: GoldSpans,
        chance: Sequence[Generator],
        *,
        counted: bool,
        ending: bool,
    ) -> BatchLoss:
        """The loss of this process's part, divided by the counts of all processes."""
        device = self.device
        losses = self._objective(batch.to(device), to_device(gold, device), chance)
        return over_processes(losses, self._accelerator, counted=counted, ending=ending)

    def backward(self, loss: BatchLoss, *, share: float) -> None:
        """Add the gradient of a batch, which is `share` of the step."""
        self._accelerator.backward(loss.objective * share)

    def update(self) -> float:
        """Change the weights; gives the gradient's length. Nothing changes if that is no number."""
        longest = self._settings.clip or math.inf
        clipped = self._accelerator.clip_grad_norm_(self._objective.parameters(), longest)
        length = float(clipped)
        # In fp16 such a step is normal: the scaler skips it and goes on with smaller numbers.
        if math.isfinite(length) or self._accelerator.scaler is not None:
            self._optimizer.step()
        self._optimizer.zero_grad()
        return length if self._accelerator.scaler is None else 0.0

    @property
    def learning_rates(self) -> dict[str, float]:
        """The present ones, by the part that they are for."""
        groups = self._optimizer.param_groups
        return {"encoder" if g["pretrained"] else "other": g["lr"] for g in groups}

    @property
    def scaler(self) -> dict[str, Any] | None:
        """What fp16 arithmetic must remember."""
        scaler = self._accelerator.scaler
        return None if scaler is None else scaler.state_dict()

    @scaler.setter
    def scaler(self, state: dict[str, Any] | None) -> None:
        if state is not None and self._accelerator.scaler is not None:
            self._accelerator.scaler.load_state_dict(state)


def _seed(number: int, device: torch.device) -> None:
    """As torch.manual_seed, which would note each call for a GPU that may appear one day."""
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)


def _number(*keys: int) -> int:
    """63 bits that depend on the keys."""
    digest = blake2b(" ".join(map(str, keys)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def end_processes() -> None:
    """Let the other processes go; the last thing that a program does."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
