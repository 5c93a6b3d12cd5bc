"""Time and memory of a detector relative to its bare encoder, in prediction and in training.

Both are timed alternately, on the same batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol, TypedDict

import torch

from spandet.benchmarking.measuring import (
    Batch,
    Task,
    Timing,
    best_times,
    encoded_lengths,
    peak_memory_of,
    runs_in,
    sample,
    sorted_batches,
)
from spandet.encoding import Encoder, Example
from spandet.errors import UsageError
from spandet.inference.device import precision_of
from spandet.inference.recognizer import Recognizer
from spandet.rendering.progress import ProgressDisplay
from spandet.seeding import generator
from spandet.tensors import to_device
from spandet.text import Document
from spandet.training.batches import fill, gold_spans
from spandet.training.data import TrainingSentences
from spandet.training.optimizer import build_optimizer
from spandet.training.recipe import Recipe
from spandet.training.step import BatchLoss, build_accelerator, build_engine

_BOUNDS = (10, 20, 40, 80)
"""The maximum number of words in each group of sentences; the last group has none."""
_NAMES = (*(f"{low + 1}–{high}" for low, high in pairwise((0, *_BOUNDS))), f"{_BOUNDS[-1] + 1}+")


class Workload(Protocol):
    """Sentences, and what is timed on their batches: the bare encoder, and everything."""

    @property
    def lengths(self) -> Sequence[int]:
        """Words that are encoded together with each sentence."""

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some of the sentences in batches, sorted by length."""

    def tasks(self, batch: Batch) -> tuple[Task, Task]:
        """The bare encoder and everything, on the same batch."""


class _Times(TypedDict):
    timed: int
    bare: float
    whole: float


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time and memory of sentences of similar length."""

    name: str
    sentences: int
    """Number of sentences in the data."""
    timed: int
    """Number of sentences that were timed."""
    bare: float
    """Seconds per sentence, of the bare encoder."""
    whole: float
    """Seconds per sentence, of everything."""
    peak: int | None
    """Peak memory in bytes, weights included; None where unknown."""

    @property
    def ratio(self) -> float:
        """Time of everything divided by the time of the bare encoder."""
        return self.whole / self.bare


def costs_by_length(workload: Workload, timing: Timing, progress: ProgressDisplay) -> list[Cost]:
    """The costs of all groups of sentences, from short to long; empty groups are omitted.

    Raises:
        UsageError: there are no words.
    """
    groups = group_by_length(workload.lengths)
    if not any(groups):
        raise UsageError("there is no sentence with a word to measure with")
    all_batches = [workload.batches(group, timing.batch) for group in groups]
    # Memory is measured before time, so that it excludes what the timed tasks allocate and keep,
    # such as the optimizer of the bare encoder.
    progress.start("memory", total=len(groups))
    peaks = []
    for batches in all_batches:
        peaks.append(peak_memory_of(workload.tasks(batches[-1])[1]) if batches else None)
        progress.update()
    share = timing.sentences / sum(map(len, groups))
    chosen = [
        sample(batches, max(1, round(share * len(group))))
        for group, batches in zip(groups, all_batches, strict=True)
    ]
    progress.start("timing", total=sum(map(len, chosen)))
    return [
        Cost(
            name=name,
            sentences=len(group),
            peak=peak,
            **_times(workload, batches, timing, progress),
        )
        for name, group, batches, peak in zip(_NAMES, groups, chosen, peaks, strict=True)
        if batches
    ]


def _times(
    workload: Workload, batches: Sequence[Batch], timing: Timing, progress: ProgressDisplay
) -> _Times:
    bare = whole = 0.0
    for batch in batches:
        times = best_times(workload.tasks(batch), timing)
        bare, whole = bare + times[0], whole + times[1]
        progress.update()
    timed = sum(map(len, batches))
    return {"timed": timed, "bare": bare / timed, "whole": whole / timed}


def group_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """The indices of the sentences in each group; sentences without words are omitted."""
    groups: list[list[int]] = [[] for _ in _NAMES]
    for number, length in enumerate(lengths):
        if length:
            groups[bisect_left(_BOUNDS, length)].append(number)
    return groups


def weighted_mean(costs: Sequence[Cost]) -> Cost:
    """The cost of all lengths, each weighted by its number of sentences in the data."""
    total = sum(cost.sentences for cost in costs)
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return Cost(
        name="all",
        sentences=total,
        timed=sum(cost.timed for cost in costs),
        bare=sum(cost.bare * cost.sentences for cost in costs) / total,
        whole=sum(cost.whole * cost.sentences for cost in costs) / total,
        peak=max(peaks, default=None),
    )


def bare_forward(encoder: Encoder, examples: Sequence[Example], device: torch.device) -> Task:
    """The forward pass of the bare encoder on a prepared batch.

    The bare encoder is the transformer; in a model without one, it is the whole encoder.
    """
    batch = encoder.prepare(examples).to(device)
    transformer = encoder.transformer
    if transformer is None or batch.pieces is None:
        return lambda: encoder(batch).features
    ids, mask = batch.pieces.ids, batch.pieces.mask.long()
    return lambda: transformer.model(input_ids=ids, attention_mask=mask).last_hidden_state


def bare_encoder_name(encoder: Encoder) -> str:
    """Describe what `bare_forward` runs, for reports."""
    return "encoder, which has no transformer" if encoder.transformer is None else "transformer"


class PredictionWorkload:
    """The forward pass of the bare encoder, and prediction from words to entities."""

    def __init__(self, recognizer: Recognizer, documents: Sequence[Document]) -> None:
        self._recognizer = recognizer
        examples = [e for d in documents for e in recognizer.examples_of(d)]
        self._examples = recognizer.tagged(examples)
        self._runs = recognizer.encoder.together(self._examples)
        words = [len(example.words) for example in self._examples]
        self.lengths = encoded_lengths(self._runs, words)
        """Words that are encoded together with each sentence."""
        recognizer.modules().eval()

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some of the sentences in batches of about this size."""
        return sorted_batches(runs_in(self._runs, group), self.lengths, size)

    def tasks(self, batch: Batch) -> tuple[Task, Task]:
        """The bare encoder and everything, on the same batch."""
        recognizer, examples = self._recognizer, [self._examples[number] for number in batch]
        forward = bare_forward(recognizer.encoder, examples, recognizer.device)
        engine = recognizer.engine

        @torch.inference_mode()
        def bare() -> None:
            forward()

        def whole() -> None:
            candidates = engine.candidates(examples)
            for _ in recognizer.entities(candidates, recognizer.decoding):
                pass

        return bare, whole


class TrainingWorkload:
    """A training step of the bare encoder, and one of the training loop.

    The weights are new, the batches are those of the recipe, and the transformer is trained.
    """

    def __init__(self, recipe: Recipe, documents: Sequence[Document]) -> None:
        self._settings = recipe.training
        self.recognizer = Recognizer.build(recipe.model, documents)
        precision = precision_of(recipe.training.precision, where="training")
        accelerator = build_accelerator(precision)
        self._engine = build_engine(self.recognizer, recipe.training, accelerator)
        self._sentences = TrainingSentences.of(self.recognizer, documents)
        encoder = self.recognizer.encoder
        bare = encoder if encoder.transformer is None else encoder.transformer.model
        pretrained = [parameter for _, parameter in encoder.pretrained_parameters()]
        self._bare_optimizer = build_optimizer(bare, pretrained, recipe.training)

    @property
    def lengths(self) -> list[int]:
        """Words that are encoded together with each sentence."""
        return encoded_lengths(self._sentences.runs, self._sentences.words)

    def batches(self, group: Sequence[int], size: int) -> list[Batch]:
        """Some of the sentences in batches; the recipe determines their size."""
        del size
        return list(fill(runs_in(self._sentences.runs, group), self._sentences, self._settings))

    def tasks(self, batch: Batch) -> tuple[Task, Task]:
        """A step of the bare encoder and one of everything, on the same batch."""
        examples = [self._sentences.examples[number] for number in batch]
        forward = bare_forward(self.recognizer.encoder, examples, self._engine.device)

        def bare() -> None:
            output = forward()
            assert isinstance(output, torch.Tensor)  # noqa: S101 (an encoder's output)
            output.mean().backward()
            self._bare_optimizer.step()
            self._bare_optimizer.zero_grad()

        return bare, lambda: self.update(self.loss(batch))

    def loss(self, batch: Batch) -> BatchLoss:
        """The forward pass of a step, as in the training loop."""
        engine, sentences, recognizer = self._engine, self._sentences, self.recognizer
        engine.begin_step(step=0, at=0.0)
        prepared = recognizer.encoder.prepare([sentences.examples[number] for number in batch])
        gold = gold_spans(
            [sentences.rows[number] for number in batch],
            recognizer.labels,
            fragments=recognizer.detector.links_fragments,
        )
        rngs = [generator(self._settings.seed, "sentence", 0, number) for number in batch]
        inputs = (prepared.to(engine.device), to_device(gold, engine.device), rngs)
        return engine.loss(*inputs, counted=True, stop=False)

    def update(self, loss: BatchLoss) -> None:
        """The backward pass and the optimizer's update."""
        self._engine.backward(loss, share=1.0)
        self._engine.update()


@dataclass(frozen=True)
class PredictSpeed:
    """The speed of `Recognizer.predict`, from documents to documents, in its own batches."""

    sentences: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Sentences per second."""
        return self.sentences / self.seconds


def predict_speed(
    recognizer: Recognizer, documents: Sequence[Document], timing: Timing
) -> PredictSpeed:
    """Time `predict` on the first documents that together have enough sentences."""
    counts = list(accumulate(len(document.sentences) for document in documents))
    some = documents[: 1 + bisect_left(counts, timing.sentences)]
    (seconds,) = best_times([lambda: list(recognizer.predict(some))], timing)
    return PredictSpeed(counts[len(some) - 1], seconds)
