"""Pretraining an encoder: steps on blocks of text, with evaluations on held-out text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from accelerate import Accelerator
from torch import nn

from spandet.pretraining.corpus import Blocks, Order, Reading
from spandet.pretraining.objective import Batch, Objective, use_fp32_attention
from spandet.pretraining.settings import PretrainingSettings
from spandet.rendering.tables import duration
from spandet.seeding import generator
from spandet.tensors import to_device
from spandet.training.batches import share_of_process
from spandet.training.checkpoint import LossSums
from spandet.training.loop import Loop, Throughput
from spandet.training.optimizer import build_layered_optimizer
from spandet.training.step import BatchLoss, Engine

EVALUATION = "evaluation"
"""Kind of the log lines with scores on held-out text."""
_STEPS_TO_ESTIMATE = 20
_MEASURED = ("loss", "accuracy")


def steps_of(settings: PretrainingSettings, blocks: int) -> int:
    """Optimizer steps of a run on this many blocks."""
    per_step = settings.batch_blocks * settings.accumulation
    return settings.steps or max(1, math.ceil(settings.epochs * blocks / per_step))


def build_pretraining_engine(
    objective: Objective, settings: PretrainingSettings, accelerator: Accelerator
) -> Engine:
    """The engine that pretrains an encoder; sets dropout and attention of the encoder."""
    objective.to(accelerator.device)
    for module in objective.modules():
        if isinstance(module, nn.Dropout):
            module.p = settings.dropout
    if accelerator.device.type == "cpu" and accelerator.mixed_precision == "bf16":
        use_fp32_attention(objective.encoder)
    shared = settings.training()
    optimizer = build_layered_optimizer(objective, objective.encoder, shared, settings.layer_decay)
    return Engine(objective, optimizer, shared, accelerator)


@dataclass(kw_only=True)
class PretrainingLoop(Loop[int]):
    """Pretrains an encoder. A batch is its number, counted from the start of the run."""

    advice: ClassVar[str] = "a lower learning rate (lr, head_lr), a longer warmup or precision=fp32"

    objective: Objective
    train: Blocks
    held_out: Blocks
    settings: PretrainingSettings
    resumed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps = steps_of(self.settings, len(self.train))
        self._order = Order(len(self.train), self.settings.seed)

    def run(self) -> None:
        """Train to the last step; a new run is evaluated before its first step."""
        state, count = self.state, self.settings.accumulation
        if not self.resumed:
            self._evaluate()
            self._checkpoint()
        first = state.step
        self._restart_progress()
        while state.step < self.steps:
            batches = range(state.step * count, (state.step + 1) * count)
            stop = self._step(batches, at=(state.step + 0.5) / self.steps)
            self.screen.advance_part(1)
            self._log_if_due()
            if state.step == first + _STEPS_TO_ESTIMATE:
                self._estimate()
            # Before any other checkpoint, so that every checkpoint includes its evaluation.
            if self._is_evaluation_due():
                self._evaluate()
                self._checkpoint()
                self._restart_progress()
            if stop and state.step < self.steps:
                self._stop_early()
            self._checkpoint_if_due()

    def _is_evaluation_due(self) -> bool:
        step, every = self.state.step, self.settings.evaluation_steps
        return step == self.steps or (every > 0 and step % every == 0)

    def _loss(self, batch: int) -> BatchLoss:
        size, engine = self.settings.batch_blocks, self.engine
        readings = self._order.readings(batch * size, size)
        own = share_of_process(range(size), process=engine.process, processes=engine.processes)
        # A process without blocks computes on one anyway: the others wait for its gradients.
        prepared = self._prepare([readings[i] for i in own or (0,)])
        self._throughput.items += size * prepared.ids.shape[1]
        inputs = to_device(prepared, engine.device)
        return engine.loss(inputs, counted=bool(own), stop=self.stop.signal > 0)

    def _prepare(self, readings: Sequence[Reading]) -> Batch:
        seed = self.settings.seed
        return self.objective.prepare(
            [self.train[reading.block] for reading in readings],
            [generator(seed, "mask", reading.epoch, reading.block) for reading in readings],
        )

    def _evaluate(self) -> None:
        """Measure the held-out loss, if there is held-out text, and save the encoder."""
        state, entry = self.state, {"seconds": self._seconds()}
        if len(self.held_out):
            entry |= self._measure().means()
            self.folder.log(EVALUATION, state.step, entry)
            shown = f"held-out loss {entry['loss']:.4f}  accuracy {100 * entry['accuracy']:.2f}"
            time = duration(entry["seconds"])
            self.screen.note(f"step {state.step:,} of {self.steps:,}  {shown}  {time}")
        self.folder.save_model()

    @torch.no_grad()
    def _measure(self) -> LossSums:
        """Loss and accuracy on held-out text, summed over all processes."""
        sums, accelerator = LossSums(), self.engine.accelerator
        self.engine.begin_evaluation()
        for batch in self._held_out_batches():
            with accelerator.autocast():
                found = self.objective.measure(to_device(batch, self.engine.device))
            totals = {name: float(loss.total) for name, loss in found.items()}
            counts = {name: float(loss.count) for name, loss in found.items()}
            sums.add(LossSums(totals=totals, counts=counts))
        values = [part.get(name, 0.0) for part in (sums.totals, sums.counts) for name in _MEASURED]
        own = torch.tensor(values, dtype=torch.float64, device=self.engine.device)
        all_totals, all_counts = accelerator.reduce(own, reduction="sum").view(2, -1).tolist()
        return LossSums(
            totals=dict(zip(_MEASURED, all_totals, strict=True)),
            counts=dict(zip(_MEASURED, all_counts, strict=True)),
        )

    def _held_out_batches(self) -> Iterator[Batch]:
        numbers = range(min(len(self.held_out), self.settings.held_out_blocks))
        size, seed, engine = self.settings.batch_blocks, self.settings.seed, self.engine
        own = share_of_process(numbers, process=engine.process, processes=engine.processes)
        for first in range(0, len(own), size):
            batch = own[first : first + size]
            yield self.objective.prepare(
                [self.held_out[number] for number in batch],
                [generator(seed, "held-out", number) for number in batch],
                measured=True,
            )

    def _restart_progress(self) -> None:
        self.screen.begin_part("pretraining", self.steps)
        self.screen.advance_part(self.state.step)
        self._throughput = Throughput()

    def _estimate(self) -> None:
        settings, speed = self.settings, self._throughput.per_second
        per_step = settings.batch_blocks * settings.accumulation * settings.block
        left = duration(per_step * (self.steps - self.state.step) / speed)
        self.screen.note(f"{speed:,.0f} pieces/s: about {left} to go for {self.steps:,} steps")

    def _log_entry(self) -> dict[str, Any]:
        rates = self.engine.learning_rates
        return {
            "learning_rates": {"encoder": rates.get("encoder", 0.0), "head": rates["other"]},
            "losses": self.state.log_losses.means(),
            "pieces_per_second": self._throughput.per_second,
        }
