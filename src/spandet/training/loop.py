"""Ctrl-C and its kin: a wish to end, granted after the step that runs."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from signal import SIGINT
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Self

from accelerate.utils import gather_object

from spandet.errors import TrainingError, TrainingInterrupted
from spandet.inference.memory import Tidiness, give_back
from spandet.inference.recognizer import Recognizer
from spandet.seeding import generator
from spandet.text import Document
from spandet.training.batches import FrozenOutputs, batches, gold_spans, part_of
from spandet.training.checkpoint import DevScore, EpochRecord, LossSums, RunState
from spandet.training.data import TrainingSentences
from spandet.training.dev_score import judge
from spandet.training.progress import Screen
from spandet.training.recipe import TrainingSettings
from spandet.training.run_folder import Keeper
from spandet.training.step import BatchLoss, Engine

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Notes a signal instead of dying of it. A second signal does what it always does."""

    def __init__(self) -> None:
        self.signal = 0
        """Which one came; 0 while none has."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # others get no signals
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (a handler's form)
        self.signal = number
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)


@dataclass
class Pace:
    """How fast sentences go by, since it was made."""

    sentences: int = 0
    started: float = field(default_factory=monotonic)

    @property
    def per_second(self) -> float:
        """Sentences, over all processes."""
        return self.sentences / max(monotonic() - self.started, 1e-9)


@dataclass(kw_only=True)
class Loop:
    """Trains a recognizer. All that a resumed run must know is in `state` and in the weights."""

    recognizer: Recognizer
    engine: Engine
    sentences: TrainingSentences
    dev: Sequence[Document] | None
    settings: TrainingSettings
    state: RunState
    keeper: Keeper
    screen: Screen
    interruption: Interruption
    frozen: FrozenOutputs | None = None
    """While the transformer does not learn."""

    def __post_init__(self) -> None:
        self._started = monotonic() - self.state.seconds
        self._pace = Pace()
        self._tidiness = Tidiness()
        self._untuned = self.recognizer.decoding.threshold

    def run(self) -> None:
        """Train until the last epoch, or until patience ends.

        Raises:
            TrainingError: a loss is not a number, or the disk is full.
            TrainingInterrupted: somebody asked for an end; the checkpoint is written.
        """
        while self.state.epoch < self.settings.epochs and not self._has_lost_patience():
            self._train()
            self._judge()

    def _has_lost_patience(self) -> bool:
        since = self.state.epoch - (self.state.best or 0)
        return 0 < self.settings.patience <= since and self.dev is not None

    def _train(self) -> None:
        """The steps of an epoch, from where the state stands."""
        state, every = self.state, self.settings.accumulation
        self._freeze_or_thaw()
        plan = batches(self.sentences, epoch=state.epoch, settings=self.settings)
        done = sum(map(len, plan[: state.position]))
        self.screen.begin_epoch(state.epoch, self.settings.epochs, len(self.sentences), done)
        self._pace = Pace()
        while state.position < len(plan):
            self._look(plan)
            group = plan[state.position : state.position + every]
            middle = (state.position + len(group) / 2) / len(plan)
            self.engine.begin_step(step=state.step, at=state.epoch + middle)
            ending = self._step(group)
            state.position += len(group)
            state.step += 1
            self._pace.sentences += sum(map(len, group))
            self.screen.advance(
                sum(map(len, group)), self._pace.per_second, state.epoch_losses.means()
            )
            if state.step % self.settings.log_steps == 0:
                self._log()
            if ending:
                self._end_early()
            self._tidiness.keep()
            if self.keeper.is_due(self.settings.checkpoint_minutes):
                self._checkpoint()

    def _step(self, group: Sequence[tuple[int, ...]]) -> bool:
        """One step on some batches; True if somebody asked for an end."""
        ending = False
        for number, batch in enumerate(group, start=1):
            with self.engine.portion(last=number == len(group)):
                loss = self._loss(batch)
                if not all(map(math.isfinite, loss.sums.totals.values())):
                    raise self._broken(f"the loss is not a finite number: {loss.sums}")
                self.engine.backward(loss, share=1 / len(group))
            self.state.epoch_losses.add(loss.sums)
            self.state.log_losses.add(loss.sums)
            ending = ending or loss.ending
        length = self.engine.update()
        if not math.isfinite(length):
            raise self._broken(f"the gradient is not a finite number (loss: {loss.sums})")
        return ending

    def _loss(self, batch: tuple[int, ...]) -> BatchLoss:
        sentences, engine = self.sentences, self.engine
        own = part_of(batch, process=engine.process, processes=engine.processes)
        # A process without a part must compute along: the others wait for its gradients.
        chosen = own or batch[:1]
        prepared = self.recognizer.encoder.prepare([sentences.examples[i] for i in chosen])
        if self.frozen is not None:
            prepared = replace(prepared, cached=self.frozen.of(chosen))
        gold = gold_spans(
            [sentences.rows[i] for i in chosen],
            self.recognizer.labels,
            fragments=self.recognizer.detector.links_fragments,
        )
        keys = (self.settings.seed, "sentence", self.state.epoch)
        rngs = [generator(*keys, i) for i in chosen]
        ending = self.interruption.signal > 0
        return engine.loss(prepared, gold, rngs, counted=bool(own), ending=ending)

    def _look(self, plan: Sequence[tuple[int, ...]]) -> None:
        """How good is it by now? Only the log hears of it: epochs decide what is kept."""
        state, every = self.state, self.settings.look_steps
        if self.dev is None or not every or not state.position or state.step % every:
            return
        score, done = self._score(), sum(map(len, plan[: state.position]))
        seen = state.epoch * len(self.sentences) + done
        facts = {"sentences": seen, "dev": score and score.model_dump()}
        self.keeper.log("look", state.step, facts)
        self.screen.begin_epoch(state.epoch, self.settings.epochs, len(self.sentences), done)

    def _freeze_or_thaw(self) -> None:
        encoder, settings = self.recognizer.encoder, self.settings
        if not settings.is_frozen(self.state.epoch) or not list(encoder.pretrained_parameters()):
            self.frozen = None
        elif self.frozen is None:
            self.screen.begin_part("the transformer rests: what it says", len(self.sentences))
            self.frozen = FrozenOutputs()
            for batch in FrozenOutputs.batches(self.sentences, settings):
                self.frozen.add(batch, encoder, self.sentences, self.engine.device)
                self.screen.advance_part(len(batch))
                if self.interruption.signal:
                    self._end_early()
            self.screen.note(f"frozen outputs are kept: {self.frozen.megabytes:,} MB")

    def _judge(self) -> None:
        """Look at dev, keep the model if it is the best so far, and write a checkpoint."""
        state, pace = self.state, self._pace.per_second
        give_back()
        score = self._score()
        give_back()
        record = EpochRecord(
            epoch=state.epoch + 1,
            step=state.step,
            losses=state.epoch_losses.means(),
            dev=score,
            sentences_per_second=pace,
            seconds=self._seconds(),
        )
        # Without dev, or while nothing is found, the last epoch is the best we know.
        is_best = score is None or not state.best_f1 or score.f1 > state.best_f1
        state.history.append(record)
        state.epoch, state.position, state.epoch_losses = state.epoch + 1, 0, LossSums()
        if is_best:
            state.best = state.epoch
            self._use(score)
            self.keeper.model()
        self.keeper.log("epoch", state.step, record.model_dump(exclude={"step"}))
        self.screen.end_epoch(record, self.settings.epochs, is_best=is_best)
        self._checkpoint()

    def _use(self, score: DevScore | None) -> None:
        """Whoever takes the model before the run is over gets one that is as good as it seems."""
        recognizer, threshold = self.recognizer, score.threshold if score else self._untuned
        recognizer.decoding = recognizer.decoding.model_copy(update={"threshold": threshold})

    def _score(self) -> DevScore | None:
        """How good the model is on dev. All processes share the work and know the answer."""
        if self.dev is None:
            return None
        first, every = self.engine.process, self.engine.processes
        own = self.dev[first::every]
        self.screen.begin_part("dev", len(own))
        found = []
        for document in self.recognizer.predict(own, min_score=0.0):
            if self.interruption.signal:
                break
            found.append(document)
            self.screen.advance_part(1)
        parts = gather_object([found])
        predicted = [Document("")] * len(self.dev)
        for process, part in enumerate(parts):
            if len(part) < len(self.dev[process::every]):
                self._end_early()
            predicted[process::every] = part
        tune = self.recognizer.decoding.tune
        return judge(self.dev, predicted, untuned=self._untuned, tune=tune)

    def _log(self) -> None:
        state = self.state
        facts = {
            "epoch": state.epoch + 1,
            "learning_rates": self.engine.learning_rates,
            "losses": state.log_losses.means(),
            "sentences_per_second": self._pace.per_second,
            "seconds": self._seconds(),
        }
        self.keeper.log("step", state.step, facts)
        state.log_losses = LossSums()

    def _checkpoint(self) -> None:
        self.state.seconds = self._seconds()
        self.state.scaler = self.engine.scaler
        self.keeper.checkpoint(self.state)

    def _end_early(self) -> None:
        self._checkpoint()
        raise TrainingInterrupted(
            f"stopped in epoch {self.state.epoch + 1} after step {self.state.step}; give the same "
            f"command with --resume to go on from there",
            self.interruption.signal or SIGINT,
        )

    def _broken(self, what: str) -> TrainingError:
        return TrainingError(
            f"epoch {self.state.epoch + 1}, step {self.state.step + 1}: {what}"
            f"{self.keeper.last_good()}. Start again with a lower learning rate (training.lr, "
            f"training.encoder_lr), a longer training.warmup or training.precision=fp32"
        )

    def _seconds(self) -> float:
        return monotonic() - self._started
