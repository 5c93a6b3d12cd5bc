"""Training a recognizer: epochs of batches, evaluation on dev after each, best model saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from accelerate.utils import gather_object

from spandet.evaluation import Score, evaluate
from spandet.inference.memory import release_memory
from spandet.inference.recognizer import Recognizer
from spandet.inference.tuning import best_threshold
from spandet.seeding import generator
from spandet.tensors import to_device
from spandet.text import Document
from spandet.training.batches import FrozenOutputs, batches, gold_spans, share_of_process
from spandet.training.checkpoint import DevScore, EpochRecord, LossSums
from spandet.training.data import TrainingSentences
from spandet.training.loop import Loop, Throughput
from spandet.training.recipe import TrainingSettings
from spandet.training.step import BatchLoss

Batch = tuple[int, ...]
"""Numbers of sentences."""


@dataclass(kw_only=True)
class TrainingLoop(Loop[Batch]):
    """Trains a recognizer for some epochs."""

    advice: ClassVar[str] = (
        "a lower learning rate (training.lr, training.encoder_lr), a longer training.warmup or "
        "training.precision=fp32"
    )

    recognizer: Recognizer
    sentences: TrainingSentences
    dev: Sequence[Document] | None
    settings: TrainingSettings
    frozen: FrozenOutputs | None = None
    """Cached transformer outputs, while the transformer is frozen."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._untuned = self.recognizer.decoding.threshold

    def run(self) -> None:
        """Train to the last epoch, or until `patience` epochs bring no better F1 on dev."""
        while self.state.epoch < self.settings.epochs and not self._is_patience_exhausted():
            self._train_epoch()
            self._end_epoch()

    def _is_patience_exhausted(self) -> bool:
        since_best = self.state.epoch - (self.state.best or 0)
        return 0 < self.settings.patience <= since_best and self.dev is not None

    def _epoch(self) -> str:
        return f"epoch {self.state.epoch + 1}"

    def _train_epoch(self) -> None:
        """The steps of an epoch, from the position in `state`."""
        state, accumulation = self.state, self.settings.accumulation
        self._update_frozen_outputs()
        plan = batches(self.sentences, epoch=state.epoch, settings=self.settings)
        self._show_epoch(plan)
        self._throughput = Throughput()
        while state.position < len(plan):
            self._evaluate_if_due(plan)
            group = plan[state.position : state.position + accumulation]
            middle = (state.position + len(group) / 2) / len(plan)
            stop = self._step(group, at=state.epoch + middle)
            state.position += len(group)
            count = sum(map(len, group))
            self._throughput.items += count
            self.screen.advance(count, self._throughput.per_second, state.epoch_losses.means())
            self._log_if_due()
            if stop:
                self._stop_early()
            self._checkpoint_if_due()

    def _show_epoch(self, plan: Sequence[Batch]) -> None:
        epoch, epochs, done = self.state.epoch, self.settings.epochs, self._sentences_done(plan)
        self.screen.begin_epoch(epoch, epochs, len(self.sentences), done)

    def _sentences_done(self, plan: Sequence[Batch]) -> int:
        return sum(map(len, plan[: self.state.position]))

    def _loss(self, batch: Batch) -> BatchLoss:
        sentences, engine = self.sentences, self.engine
        own = share_of_process(batch, process=engine.process, processes=engine.processes)
        # A process without sentences computes on one anyway: the others wait for its gradients.
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
        inputs = (prepared.to(engine.device), to_device(gold, engine.device), rngs)
        return engine.loss(*inputs, counted=bool(own), stop=self.stop.signal > 0)

    def _add(self, sums: LossSums) -> None:
        self.state.epoch_losses.add(sums)
        super()._add(sums)

    def _log_entry(self) -> dict[str, Any]:
        return {
            "epoch": self.state.epoch + 1,
            "learning_rates": self.engine.learning_rates,
            "losses": self.state.log_losses.means(),
            "sentences_per_second": self._throughput.per_second,
        }

    def _update_frozen_outputs(self) -> None:
        """Compute the outputs of a transformer that is frozen in this epoch, or drop them."""
        encoder, settings = self.recognizer.encoder, self.settings
        if not settings.is_frozen(self.state.epoch) or not list(encoder.pretrained_parameters()):
            self.frozen = None
        elif self.frozen is None:
            self.screen.begin_part("outputs of the frozen transformer", len(self.sentences))
            self.frozen = FrozenOutputs()
            for batch in FrozenOutputs.batches(self.sentences, settings):
                self.frozen.add(batch, encoder, self.sentences, self.engine.device)
                self.screen.advance_part(len(batch))
                if self.stop.signal:
                    self._stop_early()
            self.screen.note(f"frozen transformer outputs are cached: {self.frozen.megabytes:,} MB")

    def _evaluate_if_due(self, plan: Sequence[Batch]) -> None:
        """Evaluate on dev inside an epoch, for the log only: the choice is among whole epochs."""
        state, every = self.state, self.settings.evaluation_steps
        if self.dev is None or not every or not state.position or state.step % every:
            return
        score = self._score()
        seen = state.epoch * len(self.sentences) + self._sentences_done(plan)
        entry = {"sentences": seen, "dev": score and score.model_dump()}
        self.folder.log("evaluation", state.step, entry)
        self._show_epoch(plan)

    def _end_epoch(self) -> None:
        """Evaluate on dev, save the model if it is the best so far, and write a checkpoint."""
        state, per_second = self.state, self._throughput.per_second
        release_memory()
        score = self._score()
        release_memory()
        record = EpochRecord(
            epoch=state.epoch + 1,
            step=state.step,
            losses=state.epoch_losses.means(),
            dev=score,
            sentences_per_second=per_second,
            seconds=self._seconds(),
        )
        # Without dev, or as long as no entity is found, the last epoch counts as the best.
        is_best = score is None or not state.best_f1 or score.f1 > state.best_f1
        state.history.append(record)
        state.epoch, state.position, state.epoch_losses = state.epoch + 1, 0, LossSums()
        if is_best:
            state.best = state.epoch
            self._set_threshold(score)
            self.folder.save_model()
        self.folder.log("epoch", state.step, record.model_dump(exclude={"step"}))
        self.screen.end_epoch(record, self.settings.epochs, is_best=is_best)
        self._checkpoint()

    def _set_threshold(self, score: DevScore | None) -> None:
        """Save the model with the threshold of its dev score, for use before the run ends."""
        recognizer, threshold = self.recognizer, score.threshold if score else self._untuned
        recognizer.decoding = recognizer.decoding.model_copy(update={"threshold": threshold})

    def _score(self) -> DevScore | None:
        """The dev score. Processes divide the documents; all of them get the result."""
        if self.dev is None:
            return None
        first, every = self.engine.process, self.engine.processes
        own = self.dev[first::every]
        self.screen.begin_part("dev", len(own))
        predicted = []
        for document in self.recognizer.predict(own, min_score=0.0):
            if self.stop.signal:
                break
            predicted.append(document)
            self.screen.advance_part(1)
        shares = gather_object([predicted])
        together = [Document("")] * len(self.dev)
        for process, share in enumerate(shares):
            if len(share) < len(self.dev[process::every]):
                self._stop_early()
            together[process::every] = share
        return dev_score(self.dev, together, untuned=self._untuned, tune=self.settings.tune)


def dev_score(
    gold: Sequence[Document], predicted: Sequence[Document], *, untuned: float, tune: bool = True
) -> DevScore:
    """Scores at the threshold with the highest F1, and F1 at the recipe's threshold.

    In early epochs the scores of correct entities are low. At a fixed threshold such a model would
    find nothing, and the epoch that is best after tuning might not be kept.

    Args:
        gold: The dev data.
        predicted: The same documents with all predicted entities, decoded with threshold 0; a
            higher threshold only removes entities.
        untuned: The recipe's threshold.
        tune: Choose the threshold; otherwise the scores are those at `untuned`.
    """
    keys = {(n, e.spans, e.label) for n, d in enumerate(gold) for e in d.entities}
    scored = [
        (e.score or 0.0, (n, e.spans, e.label) in keys)
        for n, d in enumerate(predicted)
        for e in d.entities
    ]
    threshold = best_threshold(scored, len(keys))[0] if tune else untuned
    best = _score_at(threshold, gold, predicted)
    return DevScore(
        precision=best.precision,
        recall=best.recall,
        f1=best.f1,
        threshold=threshold,
        f1_untuned=_score_at(untuned, gold, predicted).f1,
    )


def _score_at(threshold: float, gold: Sequence[Document], predicted: Sequence[Document]) -> Score:
    kept = [
        replace(d, entities=tuple(e for e in d.entities if (e.score or 0.0) > threshold))
        for d in predicted
    ]
    return evaluate(gold, kept, resamples=0).micro
