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
from torch.optim import Optimizer

from spandet.detectors import Detector
from spandet.encoding import Encoder, EncoderBatch
from spandet.inference.device import Precision, device_of
from spandet.inference.recognizer import Recognizer
from spandet.tensors import GoldSpans, Loss
from spandet.training.checkpoint import Learner, LossSums, RunState, Saved
from spandet.training.optimizer import build_optimizer, set_learning_rates
from spandet.training.recipe import TrainingSettings


class Objective(nn.Module):
    """Encoder and detector as one module, whose gradients the processes synchronise."""

    def __init__(self, encoder: Encoder, detector: Detector) -> None:
        super().__init__()
        self.encoder = encoder
        self.detector = detector

    def forward(
        self, batch: EncoderBatch, gold: GoldSpans, rngs: Sequence[Generator]
    ) -> dict[str, Loss]:
        """The parts of the loss in fp32; the same parts for every batch."""
        losses = self.detector(self.encoder(batch), gold, rngs)
        return {name: Loss(loss.total.float(), loss.count.float()) for name, loss in losses.items()}


@dataclass(frozen=True)
class BatchLoss:
    """The loss of a batch over all processes."""

    objective: Tensor
    """The tensor to call `backward` on in this process; the processes' gradients are averaged."""
    sums: LossSums
    stop: bool
    """Whether any process has received a stop request."""


def reduce_losses(
    losses: Mapping[str, Loss], accelerator: Accelerator, *, counted: bool, stop: bool
) -> BatchLoss:
    """Divide loss sums by the counts of all processes, so that their number changes nothing.

    Args:
        losses: Of this process's share of the batch.
        accelerator: Connects the processes.
        counted: False for a process whose share is empty: its loss is multiplied by zero.
        stop: Whether this process has received a stop request.
    """
    names = list(losses)
    totals = torch.stack([losses[name].total for name in names]) * counted
    counts = torch.stack([losses[name].count for name in names]) * counted
    stops = torch.tensor([float(stop)], device=totals.device)
    sums = accelerator.reduce(torch.cat([totals.detach(), counts, stops]), reduction="sum")
    all_counts = sums[len(names) : -1]
    objective = (totals / all_counts.clamp(min=1)).sum() * accelerator.num_processes
    values = sums.tolist()
    return BatchLoss(
        objective,
        LossSums(
            totals=dict(zip(names, values[: len(names)], strict=True)),
            counts=dict(zip(names, values[len(names) : -1], strict=True)),
        ),
        stop=values[-1] > 0,
    )


def build_accelerator(precision: Precision) -> Accelerator:
    """The processes and devices that the launcher provides; a single process gets the best device.

    Args:
        precision: Arithmetic of the forward pass, from `precision_of`.
    """
    # Which parameters a batch does not use (those of a frozen transformer) differs between batches.
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    # Otherwise the precision of the first run of a program would be used for all later ones.
    AcceleratorState._reset_state()  # noqa: SLF001 (there is no public function for it)
    return Accelerator(
        mixed_precision="no" if precision == "fp32" else precision,
        # Without this, processes on a machine that has only a CPU would not find each other.
        cpu=device_of("auto").type == "cpu",
        kwargs_handlers=[unused],
    )


def end_processes() -> None:
    """Disconnect from the other processes; called at the end of a program."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class Engine:
    """Computes losses, gradients and updates of an objective, in one process or in several."""

    def __init__(
        self,
        objective: nn.Module,
        optimizer: Optimizer,
        settings: TrainingSettings,
        accelerator: Accelerator,
        *,
        saved: nn.Module | None = None,
    ) -> None:
        """Prepare an objective for training.

        Args:
            objective: A module that returns the parts of the loss, on the accelerator's device.
            optimizer: From `build_optimizer`.
            settings: Seed, learning rates and clipping.
            accelerator: From `build_accelerator`.
            saved: The module whose weights go into checkpoints; without it, `objective`.
        """
        self._settings = settings
        self.accelerator = accelerator
        self.learner = Learner(objective if saved is None else saved, optimizer)
        self._objective, self._optimizer = accelerator.prepare(objective, optimizer)

    @property
    def process(self) -> int:
        """The number of this process, counted from 0."""
        return int(self.accelerator.process_index)

    @property
    def processes(self) -> int:
        """The number of processes."""
        return int(self.accelerator.num_processes)

    @property
    def device(self) -> torch.device:
        """The device of this process."""
        return torch.device(self.accelerator.device)

    def restore(self, saved: Saved) -> RunState:
        """Continue from a checkpoint: set weights and optimizer, and return the state."""
        self.learner.restore(saved.tensors)
        self.scaler = saved.state.scaler
        return saved.state

    def begin_step(self, *, step: int, at: float) -> None:
        """Set the global random generators for a step, and the learning rates.

        Args:
            step: Steps done; the seed of dropout depends on it.
            at: Epochs done, with fractions.
        """
        # Dropout uses torch's global generator. It is seeded for every step, so that a resumed run
        # draws the same numbers without a generator's state in its checkpoint.
        _seed(_number(self._settings.seed, step, self.process), self.device)
        set_learning_rates(self._optimizer, self._settings, at)
        self._objective.train()

    def begin_evaluation(self) -> None:
        """Switch dropout off."""
        self._objective.eval()

    def accumulate(self, *, last: bool) -> AbstractContextManager[None]:
        """Context for each batch of a step: processes exchange gradients in the last one only."""
        none: AbstractContextManager[None] = nullcontext()
        return none if last else self.accelerator.no_sync(self._objective)

    def loss(self, *inputs: Any, counted: bool, stop: bool) -> BatchLoss:
        """The loss of a batch over all processes.

        Args:
            inputs: Of the objective, on this process's device.
            counted: Whether this process's share of the batch is more than a placeholder.
            stop: Whether this process has received a stop request.
        """
        losses = self._objective(*inputs)
        return reduce_losses(losses, self.accelerator, counted=counted, stop=stop)

    def backward(self, loss: BatchLoss, *, share: float) -> None:
        """Add the gradient of a batch, multiplied by its share of the step."""
        self.accelerator.backward(loss.objective * share)

    def update(self) -> float:
        """Update the weights and return the gradient norm; nothing changes if it is not finite."""
        maximum = self._settings.clip or math.inf
        norm = float(self.accelerator.clip_grad_norm_(self._objective.parameters(), maximum))
        # In fp16 an infinite gradient is expected: the scaler skips the step and lowers its factor.
        if math.isfinite(norm) or self.accelerator.scaler is not None:
            self._optimizer.step()
        self._optimizer.zero_grad()
        return norm if self.accelerator.scaler is None else 0.0

    @property
    def learning_rates(self) -> dict[str, float]:
        """Current learning rates of the pretrained encoder and of everything else (the highest)."""
        rates: dict[str, float] = {}
        for group in self._optimizer.param_groups:
            part = "encoder" if group["pretrained"] else "other"
            rates[part] = max(rates.get(part, 0.0), group["lr"])
        return rates

    @property
    def scaler(self) -> dict[str, Any] | None:
        """State of the gradient scaler, which only fp16 has."""
        scaler = self.accelerator.scaler
        return None if scaler is None else scaler.state_dict()

    @scaler.setter
    def scaler(self, state: dict[str, Any] | None) -> None:
        if state is not None and self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state)


def build_engine(
    recognizer: Recognizer, settings: TrainingSettings, accelerator: Accelerator
) -> Engine:
    """The engine that trains a recognizer."""
    objective = Objective(recognizer.encoder, recognizer.detector).to(accelerator.device)
    pretrained = [parameter for _, parameter in recognizer.encoder.pretrained_parameters()]
    optimizer = build_optimizer(objective, pretrained, settings)
    return Engine(objective, optimizer, settings, accelerator, saved=recognizer.modules())


def _seed(number: int, device: torch.device) -> None:
    """As torch.manual_seed, which without a GPU would store each call for a later one."""
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)


def _number(*keys: int) -> int:
    """63 bits that depend on the keys."""
    digest = blake2b(" ".join(map(str, keys)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
