"""What the settings of a trained model are worth, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from spandet.benchmarking.batches import Batch, read_at_once, sample, sorted_batches
from spandet.benchmarking.clock import Timing, Work, best_times, threads
from spandet.benchmarking.variants import Model, Option, Variant
from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.evaluation import Score, evaluate
from spandet.inference.batching import windows
from spandet.text import Document
from spandet.training.checkpoint import DevScore
from spandet.training.data import Split
from spandet.training.epochs import dev_score
from spandet.training.progress import Screen

Choice = tuple[str, ...]
"""Assignments such as `detector.steps=2`; none of them: the model as it is."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A variant of the model: how good it is, and how fast."""

    threshold: float
    """Its own."""
    own: Score
    """At that threshold."""
    tuned: DevScore
    """At the threshold with the best F1 on the same data."""
    encoder_ms: float
    """Milliseconds per sentence, from words to vectors."""
    detector_ms: float
    """From vectors to entities."""

    @property
    def ms(self) -> float:
        """Milliseconds per sentence, from words to entities."""
        return self.encoder_ms + self.detector_ms


@dataclass(frozen=True, kw_only=True)
class Swept:
    """Everything that a sweep has found."""

    model: str
    data: Split
    options: tuple[Option, ...]
    grid: bool
    timing: Timing
    timed: int
    """Sentences that were timed."""
    measured: dict[Choice, Measured]
    """By what was assigned; the model as it is comes first."""
    same_as_base: frozenset[Choice]
    """Assignments that change nothing."""


def choices(options: Sequence[Option], *, grid: bool) -> list[Choice]:
    """What to measure: the model as it is, then each option by itself or all combinations."""
    axes = [[f"{option.key}={value}" for value in option.values] for option in options]
    found: list[Choice] = list(product(*axes)) if grid else [(one,) for own in axes for one in own]
    return [(), *found]


def sweep(
    model: Model,
    data: Split,
    options: Sequence[Option],
    *,
    grid: bool = False,
    timing: Timing | None = None,
    screen: Screen | None = None,
) -> Swept:
    """Measure a model under every value of some options.

    Args:
        model: What was trained.
        data: What to score it on and to time it with.
        options: Each by itself, unless `grid` asks for all combinations.
        grid: Combine the options.
        timing: How time is measured.
        screen: Shows how far it is.

    Raises:
        SpandetError: an option does not exist or cannot be changed, or there is nothing to find.
    """
    _check(data, options)
    timing, screen = timing or Timing(), screen or Screen(silent=True)
    wanted = {choice: model.variant(choice) for choice in choices(options, grid=grid)}
    variants = list({id(variant): variant for variant in wanted.values()}.values())
    with screen, threads(timing.threads):
        scores = _scores(model, variants, data.documents, screen)
        race = _Race(model, variants, data.documents)
        some = sample(race.batches(timing.batch), timing.sentences)
        times = race.times(some, timing, screen)
    measured = [
        replace(score, encoder_ms=encoder, detector_ms=detector)
        for score, (encoder, detector) in zip(scores, times, strict=True)
    ]
    place = {id(variant): number for number, variant in enumerate(variants)}
    return Swept(
        model=model.folder.resolve().name,
        data=data,
        options=tuple(options),
        grid=grid,
        timing=timing,
        timed=sum(map(len, some)),
        measured={choice: measured[place[id(variant)]] for choice, variant in wanted.items()},
        same_as_base=frozenset(c for c, variant in wanted.items() if variant is wanted[()]),
    )


def _check(data: Split, options: Sequence[Option]) -> None:
    seen: set[str] = set()
    for option in options:
        if option.key in seen:
            raise UsageError(f"--set {option.key} is given twice; name all its values in one")
        seen.add(option.key)
    if not data.entities:
        raise UsageError(f"{data.name} has no entities to score against")


def _scores(
    model: Model, variants: Sequence[Variant], gold: Sequence[Document], screen: Screen
) -> list[Measured]:
    """How good each variant is; times are still to be measured."""
    found: list[list[Document]] = [[] for _ in variants]
    screen.begin_part("scoring", len(gold) * len(variants))
    for window in windows(gold):
        for variant, own in zip(variants, found, strict=True):
            for document in variant.predict(window, min_score=0.0):
                own.append(document)
                screen.advance_part(1)
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
    sure = [
        replace(d, entities=tuple(e for e in d.entities if (e.score or 0.0) > threshold))
        for d in found
    ]
    return evaluate(gold, sure, resamples=0).micro


class _Race:
    """All variants take turns on each batch."""

    def __init__(
        self, model: Model, variants: Sequence[Variant], documents: Sequence[Document]
    ) -> None:
        self._model = model
        self._variants = variants
        # Encoders that variants share take one turn: the time that is common to them is equal.
        self._readers = list({id(variant.encoder): variant for variant in variants}.values())
        self._examples = {
            id(reader.encoder): reader.tagged([e for d in documents for e in reader.examples_of(d)])
            for reader in self._readers
        }

    def batches(self, size: int) -> list[Batch]:
        """All sentences, as the first variant reads them."""
        encoder = self._readers[0].encoder
        examples = self._examples[id(encoder)]
        runs = encoder.together(examples)
        lengths = read_at_once(runs, [len(example.words) for example in examples])
        return sorted_batches(runs, lengths, size)

    def times(
        self, batches: Sequence[Batch], timing: Timing, screen: Screen
    ) -> list[tuple[float, float]]:
        """Milliseconds per sentence of each variant, in its encoder and after it."""
        encoding, finding = [0.0] * len(self._readers), [0.0] * len(self._variants)
        screen.begin_part("timing", len(batches))
        for batch in batches:
            for variant in self._variants:
                variant.find(self._own(variant, batch))  # for warmth; it encodes for the others
            best = best_times(self._works(batch), timing)
            encoding = [sum(pair) for pair in zip(encoding, best, strict=False)]
            finding = [sum(pair) for pair in zip(finding, best[len(encoding) :], strict=True)]
            self._model.encoded.clear()
            screen.advance_part(1)
        per_sentence = 1000 / sum(map(len, batches))
        encoders = [id(reader.encoder) for reader in self._readers]
        return [
            (per_sentence * encoding[encoders.index(id(variant.encoder))], per_sentence * seconds)
            for variant, seconds in zip(self._variants, finding, strict=True)
        ]

    def _works(self, batch: Batch) -> list[Work]:
        encode = [partial(reader.encode, self._own(reader, batch)) for reader in self._readers]
        find = [partial(variant.find, self._own(variant, batch)) for variant in self._variants]
        return [*encode, *find]

    def _own(self, variant: Variant, batch: Batch) -> list[Example]:
        examples = self._examples[id(variant.encoder)]
        return [examples[number] for number in batch]
