"""The way of an entity: where its span stood after each stage of the detector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spandet.decoding import decode
from spandet.recognizer import Recognizer
from spandet.tensors import Stage
from spandet.text import Document, Entity, WordSpan


@dataclass(frozen=True, slots=True)
class Step:
    """One stage: boundaries in words, which may lie between words, and what was believed."""

    name: str
    start: float
    end: float
    score: float | None
    """How sure the stage was that there is an entity, where it says so."""
    label_probs: dict[str | None, float] | None
    """How likely each label was (None: no entity), where the stage says so."""


@dataclass(frozen=True, slots=True)
class TracedEntity:
    """An entity that was found, and how."""

    sentence: int
    """The number of its sentence in the document."""
    entity: Entity[WordSpan]
    steps: tuple[Step, ...]


def trace(recognizer: Recognizer, document: Document) -> Iterator[TracedEntity]:
    """The entities of a document with the stages that led to each of them.

    For `locate-and-label` these are the seed with the filter's score, and the moved span with the
    label's: their difference is what the regressor said.
    """
    examples = recognizer.examples_of(document)
    for chosen, predictions in recognizer.predictions(examples):
        found = decode(predictions, recognizer.decoding)
        origins = found.origin.tolist()
        for (row, entity), origin in zip(recognizer.entities(found), origins, strict=True):
            steps = (_step(stage, row, origin, recognizer.labels) for stage in predictions.trace)
            yield TracedEntity(chosen[row], entity, tuple(steps))


def _step(stage: Stage, row: int, origin: int, labels: Sequence[str]) -> Step:
    start, end = stage.spans[row, origin].tolist()
    probs = None
    if stage.label_probs is not None:
        values = stage.label_probs[row, origin].tolist()
        probs = dict(zip((None, *labels), values, strict=True))
    score = None if stage.scores is None else stage.scores[row, origin].item()
    return Step(stage.name, start, end, score, probs)
