"""Scores and times of a trained model with other settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from spandet.benchmarking.measuring import (
    Batch,
    Task,
    Timing,
    best_times,
    encoded_lengths,
    sample,
    sorted_batches,
    torch_threads,
)
from spandet.benchmarking.variants import SweptModel, Variant
from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.evaluation import Score, evaluate
from spandet.inference.batching import windows
from spandet.inference.engine import TorchEngine
from spandet.rendering.progress import ProgressDisplay
from spandet.text import Document
from spandet.training.checkpoint import DevScore
from spandet.training.data import Split
from spandet.training.epochs import dev_score


@dataclass(frozen=True)
class Option:
    """A setting and the values to measure, as they were written."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Option:
        """Read `section.key=value,value,…`; commas inside brackets and quotes do not separate."""
        key, equals, rest = text.partition("=")
        values = tuple(dict.fromkeys(part.strip() for part in _split_values(rest)))
        if not equals or "." not in key or "" in values:
            raise UsageError(f"--set {text}: expected section.key=value,value,…")
        return cls(key.strip(), values)


def _split_values(text: str) -> list[str]:
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "\"'":
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quote:
            values.append("")
        else:
            values[-1] += letter
    return values


Choice = tuple[str, ...]
"""Assignments such as `detector.steps=2`; empty for the unchanged model."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Scores and times of a variant of the model."""

    threshold: float
    """The variant's own threshold."""
    own: Score
    """The score at that threshold."""
    tuned: DevScore
    """The score at the threshold with the best F1 on the same data."""
    encoder_ms: float
    """Milliseconds per sentence, from words to vectors."""
    detector_ms: float
    """Milliseconds per sentence, from vectors to entities."""

    @property
    def ms(self) -> float:
        """Milliseconds per sentence, from words to entities."""
        return self.encoder_ms + self.detector_ms


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The measurements of a sweep."""

    model: str
    data: Split
    options: tuple[Option, ...]
    grid: bool
    timing: Timing
    timed: int
    """Sentences that were timed."""
    measured: dict[Choice, Measured]
    """By assignments; the unchanged model comes first."""
    same_as_base: frozenset[Choice]
    """Assignments that change nothing."""


def choices(options: Sequence[Option], *, grid: bool) -> list[Choice]:
    """The variants to measure: the unchanged model, then each option alone or all combinations."""
    axes = [[f"{option.key}={value}" for value in option.values] for option in options]
    found: list[Choice] = list(product(*axes)) if grid else [(one,) for own in axes for one in own]
    return [(), *found]


def sweep(
    model: SweptModel,
    data: Split,
    options: Sequence[Option],
    *,
    grid: bool = False,
    timing: Timing | None = None,
    progress: ProgressDisplay | None = None,
) -> SweepResult:
    """Measure a model with every value of some options.

    Args:
        model: The trained model.
        data: Documents for scores and times.
        options: The settings and their values.
        grid: Measure all combinations of the options instead of each option alone.
        timing: How time is measured.
        progress: Where to show progress; nowhere by default.

    Raises:
        SpandetError: an option does not exist or cannot be changed, or the data have no entities.
    """
    _check(data, options)
    timing, progress = timing or Timing(), progress or ProgressDisplay(silent=True)
    wanted = {choice: model.variant(choice) for choice in choices(options, grid=grid)}
    variants = list({id(variant): variant for variant in wanted.values()}.values())
    with progress, torch_threads(timing.threads):
        scores = _scores(model, variants, data.documents, progress)
        timer = _VariantTimer(model, variants, data.documents)
        batches = sample(timer.batches(timing.batch), timing.sentences)
        times = timer.times(batches, timing, progress)
    measured = [
        replace(score, encoder_ms=encoder, detector_ms=detector)
        for score, (encoder, detector) in zip(scores, times, strict=True)
    ]
    place = {id(variant): number for number, variant in enumerate(variants)}
    return SweepResult(
        model=model.folder.resolve().name,
        data=data,
        options=tuple(options),
        grid=grid,
        timing=timing,
        timed=sum(map(len, batches)),
        measured={choice: measured[place[id(variant)]] for choice, variant in wanted.items()},
        same_as_base=frozenset(c for c, variant in wanted.items() if variant is wanted[()]),
    )


def _check(data: Split, options: Sequence[Option]) -> None:
    seen: set[str] = set()
    for option in options:
        if option.key in seen:
            raise UsageError(
                f"--set {option.key} is given twice; expected all its values in one --set"
            )
        seen.add(option.key)
    if not data.entities:
        raise UsageError(f"{data.name} has no entities to score against")


def _scores(
    model: SweptModel,
    variants: Sequence[Variant],
    gold: Sequence[Document],
    progress: ProgressDisplay,
) -> list[Measured]:
    """The scores of each variant; times are 0 until they are measured."""
    found: list[list[Document]] = [[] for _ in variants]
    progress.start("scoring", total=len(gold) * len(variants))
    for window in windows(gold):
        for variant, own in zip(variants, found, strict=True):
            for document in variant.predict(window, min_score=0.0):
                own.append(document)
                progress.update()
        model.encoded.clear()
    return [
        Measured(
            threshold=variant.decoding.threshold,
            own=_score_above(variant.decoding.threshold, gold, own),
            tuned=dev_score(gold, own, untuned=variant.decoding.threshold),
            encoder_ms=0.0,
            detector_ms=0.0,
        )
        for variant, own in zip(variants, found, strict=True)
    ]


def _score_above(threshold: float, gold: Sequence[Document], found: Sequence[Document]) -> Score:
    accepted = [
        replace(d, entities=tuple(e for e in d.entities if (e.score or 0.0) > threshold))
        for d in found
    ]
    return evaluate(gold, accepted, resamples=0).micro


class _VariantTimer:
    """Times all variants alternately on each batch."""

    def __init__(
        self, model: SweptModel, variants: Sequence[Variant], documents: Sequence[Document]
    ) -> None:
        self._model = model
        self._variants = variants
        # An encoder that several variants share is timed once.
        self._encoding = list({id(variant.encoder): variant for variant in variants}.values())
        self._examples = {
            id(variant.encoder): variant.tagged(
                [e for d in documents for e in variant.examples_of(d)]
            )
            for variant in self._encoding
        }

    def batches(self, size: int) -> list[Batch]:
        """All sentences in batches, as the first variant encodes them."""
        encoder = self._encoding[0].encoder
        examples = self._examples[id(encoder)]
        runs = encoder.together(examples)
        lengths = encoded_lengths(runs, [len(example.words) for example in examples])
        return sorted_batches(runs, lengths, size)

    def times(
        self, batches: Sequence[Batch], timing: Timing, progress: ProgressDisplay
    ) -> list[tuple[float, float]]:
        """Milliseconds per sentence of each variant, in its encoder and in its detector."""
        encoding, detection = [0.0] * len(self._encoding), [0.0] * len(self._variants)
        progress.start("timing", total=len(batches))
        for batch in batches:
            for variant in self._variants:
                variant.find(
                    self._examples_of(variant, batch)
                )  # warm-up; fills the cache of word vectors
            best = best_times(self._tasks(batch), timing)
            encoding = [sum(pair) for pair in zip(encoding, best, strict=False)]
            detection = [sum(pair) for pair in zip(detection, best[len(encoding) :], strict=True)]
            self._model.encoded.clear()
            progress.update()
        per_sentence = 1000 / sum(map(len, batches))
        encoders = [id(variant.encoder) for variant in self._encoding]
        return [
            (per_sentence * encoding[encoders.index(id(variant.encoder))], per_sentence * seconds)
            for variant, seconds in zip(self._variants, detection, strict=True)
        ]

    def _tasks(self, batch: Batch) -> list[Task]:
        encode = [
            partial(TorchEngine.encode, variant.engine, self._examples_of(variant, batch))
            for variant in self._encoding
        ]  # without the cache
        find = [
            partial(variant.find, self._examples_of(variant, batch)) for variant in self._variants
        ]
        return [*encode, *find]

    def _examples_of(self, variant: Variant, batch: Batch) -> list[Example]:
        examples = self._examples[id(variant.encoder)]
        return [examples[number] for number in batch]
