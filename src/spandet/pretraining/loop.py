"""The loop of a pretraining run: steps, evaluations on held-out text, and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from signal import SIGINT
from time import monotonic

from spandet.errors import TrainingError, TrainingInterrupted
from spandet.inference.memory import Tidiness
from spandet.pretraining.corpus import Blocks, Order, Reading
from spandet.pretraining.engine import PretrainingEngine
from spandet.pretraining.objective import Batch
from spandet.pretraining.settings import PretrainingSettings
from spandet.seeding import generator
from spandet.training.batches import part_of
from spandet.training.checkpoint import LossSums, RunState
from spandet.training.loop import Interruption
from spandet.training.progress import Screen, clock
from spandet.training.run_folder import Keeper
from spandet.training.step import BatchLoss

EVALUATION = "evaluation"
"""The kind of the log's lines on held-out text."""
_STEPS_TO_ESTIMATE = 20


def steps_of(settings: PretrainingSettings, blocks: int) -> int:
    """Optimizer steps of a run over so many blocks."""
    per_step = settings.batch_blocks * settings.accumulation
    return settings.steps or max(1, math.ceil(settings.epochs * blocks / per_step))


@dataclass(kw_only=True)
class PretrainingLoop:
    """Trains an encoder. All that a resumed run must know is in `state` and in the weights."""

    engine: PretrainingEngine
    train: Blocks
    held_out: Blocks
    settings: PretrainingSettings
    state: RunState
    keeper: Keeper
    screen: Screen
    interruption: Interruption

    def __post_init__(self) -> None:
        self.steps = steps_of(self.settings, len(self.train))
        self._order = Order(len(self.train), self.settings.seed)
        self._began = monotonic() - self.state.seconds
        self._tidiness = Tidiness()
        self._pace_from, self._pieces = monotonic(), 0

    def run(self, *, resumed: bool) -> None:
        """Train to the last step.

        Raises:
            TrainingError: a loss is not a number, or the disk is full.
            TrainingInterrupted: somebody asked for an end; the checkpoint is written.
        """
        state, settings = self.state, self.settings
        if not resumed:
            self._evaluate()
            self._checkpoint()
        first = state.step
        self._begin_pace()
        while state.step < self.steps:
            ending = self._step()
            self.screen.advance_part(1)
            if state.step % settings.log_steps == 0:
                self._log()
            if state.step == first + _STEPS_TO_ESTIMATE:
                self._estimate()
            # Before any checkpoint, so that one always stands behind the evaluation of its step.
            every = settings.evaluation_steps
            if state.step == self.steps or (every and state.step % every == 0):
                self._evaluate()
                self._checkpoint()
                self._begin_pace()
            if ending and state.step < self.steps:
                self._end_early()
            self._tidiness.keep()
            if self.keeper.is_due(settings.checkpoint_minutes):
                self._checkpoint()

    def _step(self) -> bool:
        """One optimizer step; True if somebody asked for an end."""
        state, count = self.state, self.settings.accumulation
        self.engine.begin_step(step=state.step, at=(state.step + 0.5) / self.steps)
        ending = False
        for number in range(count):
            with self.engine.portion(last=number == count - 1):
                loss = self._loss(state.step * count + number)
                if not all(map(math.isfinite, loss.sums.totals.values())):
                    raise self._broken(f"the loss is not a finite number: {loss.sums}")
                self.engine.backward(loss, share=1 / count)
            state.log_losses.add(loss.sums)
            ending = ending or loss.ending
        if not math.isfinite(self.engine.update()):
            raise self._broken(f"the gradient is not a finite number (loss: {loss.sums})")
        state.step += 1
        return ending

    def _loss(self, batch: int) -> BatchLoss:
        """Of one batch, counted from the beginning of the run."""
        size, engine = self.settings.batch_blocks, self.engine
        readings = self._order.readings(batch * size, size)
        own = part_of(range(size), process=engine.process, processes=engine.processes)
        # A process without a part must compute along: the others wait for its gradients.
        prepared = self._prepare([readings[i] for i in own or (0,)])
        self._pieces += size * prepared.ids.shape[1]
        ending = self.interruption.signal > 0
        return engine.batch_loss(prepared, counted=bool(own), ending=ending)

    def _prepare(self, readings: Sequence[Reading]) -> Batch:
        seed = self.settings.seed
        return self.engine.objective.prepare(
            [self.train[reading.block] for reading in readings],
            [generator(seed, "mask", reading.epoch, reading.block) for reading in readings],
        )

    def _evaluate(self) -> None:
        """Measure the held-out loss, if there is such text, and write the encoder as it is."""
        state, facts = self.state, {"seconds": self._seconds()}
        if len(self.held_out):
            facts |= self.engine.measure(self._held_out_batches()).means()
            self.keeper.log(EVALUATION, state.step, facts)
            shown = f"held-out loss {facts['loss']:.4f}  accuracy {100 * facts['accuracy']:.2f}"
            time = clock(facts["seconds"])
            self.screen.note(f"step {state.step:,} of {self.steps:,}  {shown}  {time}")
        self.keeper.model()

    def _held_out_batches(self) -> Iterator[Batch]:
        numbers = range(min(len(self.held_out), self.settings.held_out_blocks))
        size, seed = self.settings.batch_blocks, self.settings.seed
        own = part_of(numbers, process=self.engine.process, processes=self.engine.processes)
        for first in range(0, len(own), size):
            batch = own[first : first + size]
            yield self.engine.objective.prepare(
                [self.held_out[number] for number in batch],
                [generator(seed, "held-out", number) for number in batch],
                measured=True,
            )

    def _begin_pace(self) -> None:
        self.screen.begin_part("pretraining", self.steps)
        self.screen.advance_part(self.state.step)
        self._pace_from, self._pieces = monotonic(), 0

    def _per_second(self) -> float:
        return self._pieces / max(monotonic() - self._pace_from, 1e-9)

    def _estimate(self) -> None:
        settings, speed = self.settings, self._per_second()
        per_step = settings.batch_blocks * settings.accumulation * settings.block
        left = clock(per_step * (self.steps - self.state.step) / speed)
        self.screen.note(f"{speed:,.0f} pieces/s: about {left} to go for {self.steps:,} steps")

    def _log(self) -> None:
        facts = {
            "learning_rates": self.engine.learning_rates,
            "losses": self.state.log_losses.means(),
            "pieces_per_second": self._per_second(),
            "seconds": self._seconds(),
        }
        self.keeper.log("step", self.state.step, facts)
        self.state.log_losses = LossSums()

    def _checkpoint(self) -> None:
        self.state.seconds = self._seconds()
        self.state.scaler = self.engine.scaler
        self.keeper.checkpoint(self.state)

    def _end_early(self) -> None:
        self._checkpoint()
        raise TrainingInterrupted(
            f"stopped after step {self.state.step}; give the same command with --resume to go on "
            f"from there",
            self.interruption.signal or SIGINT,
        )

    def _broken(self, what: str) -> TrainingError:
        return TrainingError(
            f"step {self.state.step + 1}: {what}{self.keeper.last_good()}. Start again with a "
            f"lower learning rate (lr, head_lr), a longer warmup or precision=fp32"
        )

    def _seconds(self) -> float:
        return monotonic() - self._began
