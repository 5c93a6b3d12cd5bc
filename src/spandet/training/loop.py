"""The training loop that runs of every kind share: steps, log lines, checkpoints, stop requests."""

from __future__ import annotations

import math
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeVar

from spandet.errors import TrainingError, TrainingInterrupted
from spandet.inference.memory import MemoryGuard
from spandet.training.checkpoint import LossSums, RunState
from spandet.training.progress import Screen
from spandet.training.run_folder import RunFolder
from spandet.training.step import BatchLoss, Engine

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Batch = TypeVar("_Batch")


class StopRequest:
    """On SIGINT or SIGTERM, finish the current step, then stop. A second signal stops at once."""

    def __init__(self) -> None:
        self.signal = 0
        """Number of the signal that was received; 0 before that."""
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore_handlers()

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (a handler's form)
        self.signal = number
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        while self._handlers:
            number, handler = self._handlers.popitem()
            signal.signal(number, handler)


@dataclass
class Throughput:
    """Items processed per second since this object was created, over all processes."""

    items: int = 0
    started: float = field(default_factory=monotonic)

    @property
    def per_second(self) -> float:
        """Mean rate."""
        return self.items / max(monotonic() - self.started, 1e-9)


class LoopSettings(Protocol):
    """The settings that every loop needs."""

    @property
    def log_steps(self) -> int:
        """Optimizer steps between two lines of the log."""

    @property
    def checkpoint_minutes(self) -> float:
        """Time between two checkpoints."""


@dataclass(kw_only=True)
class Loop(ABC, Generic[_Batch]):
    """Optimizer steps with log lines, checkpoints and stop requests; subclasses choose the batches.

    `state` and the weights hold everything that a resumed run needs.
    """

    advice: ClassVar[str]
    """Settings to change after a loss that is not finite."""

    engine: Engine
    settings: LoopSettings
    state: RunState
    folder: RunFolder
    screen: Screen
    stop: StopRequest

    def __post_init__(self) -> None:
        self._started = monotonic() - self.state.seconds
        self._throughput = Throughput()
        self._memory = MemoryGuard()

    @abstractmethod
    def run(self) -> None:
        """Train to the end of the run.

        Raises:
            TrainingError: a loss is not finite, or a file cannot be written.
            TrainingInterrupted: SIGINT or SIGTERM was received; a checkpoint is written.
        """

    @abstractmethod
    def _loss(self, batch: _Batch) -> BatchLoss:
        """The loss of one batch, over all processes."""

    @abstractmethod
    def _log_entry(self) -> dict[str, Any]:
        """Values of a log line for the steps since the last one."""

    def _epoch(self) -> str:
        """The current epoch for messages; empty for runs that are not divided into epochs."""
        return ""

    def _step(self, batches: Sequence[_Batch], *, at: float) -> bool:
        """One optimizer step on some batches; True if any process got a stop request.

        Args:
            batches: Their gradients are averaged.
            at: Epochs done, with fractions, for the learning rates.
        """
        stop = False
        self.engine.begin_step(step=self.state.step, at=at)
        for number, batch in enumerate(batches, start=1):
            with self.engine.accumulate(last=number == len(batches)):
                loss = self._loss(batch)
                if not all(map(math.isfinite, loss.sums.totals.values())):
                    raise self._not_finite(f"the loss is not a finite number: {loss.sums}")
                self.engine.backward(loss, share=1 / len(batches))
            self._add(loss.sums)
            stop = stop or loss.stop
        if not math.isfinite(self.engine.update()):
            raise self._not_finite(f"the gradient is not a finite number (loss: {loss.sums})")
        self.state.step += 1
        return stop

    def _add(self, sums: LossSums) -> None:
        self.state.log_losses.add(sums)

    def _log_if_due(self) -> None:
        if self.state.step % self.settings.log_steps == 0:
            entry = {**self._log_entry(), "seconds": self._seconds()}
            self.folder.log("step", self.state.step, entry)
            self.state.log_losses = LossSums()

    def _checkpoint_if_due(self) -> None:
        self._memory.check()
        if self.folder.is_checkpoint_due(self.settings.checkpoint_minutes):
            self._checkpoint()

    def _checkpoint(self) -> None:
        self.state.seconds = self._seconds()
        self.state.scaler = self.engine.scaler
        self.folder.checkpoint(self.state)

    def _stop_early(self) -> NoReturn:
        """Write a checkpoint and end the run with `TrainingInterrupted`."""
        self._checkpoint()
        epoch = f" in {self._epoch()}" if self._epoch() else ""
        raise TrainingInterrupted(
            f"stopped{epoch} after step {self.state.step}; give the same command with --resume to "
            f"continue from there",
            self.stop.signal or signal.SIGINT,
        )

    def _not_finite(self, what: str) -> TrainingError:
        epoch = f"{self._epoch()}, " if self._epoch() else ""
        last = self.folder.last_checkpoint()
        return TrainingError(
            f"{epoch}step {self.state.step + 1}: {what}{last}. Start again with {self.advice}"
        )

    def _seconds(self) -> float:
        return monotonic() - self._started
