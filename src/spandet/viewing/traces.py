"""Traces: the stages of each predicted or missed entity, for the terminal, HTML and JSON.

Spans are half-open and counted in words of their sentence; only printed text has inclusive ends
(see `trace_notation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spandet.text import CharSpan, Document, Entity, Sentence, WordSpan

LabelProbs = Mapping[str | None, float]
"""The probability of each label; None stands for "no entity"."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage: boundaries in words, which may be fractional, and scores."""

    name: str
    start: float
    end: float
    score: float | None = None
    """The score that there is an entity, where the stage has one."""
    label_probs: LabelProbs | None = None
    """The probability of each label, where the stage has them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that the detector considered, with its trajectory."""

    span: WordSpan
    """The final span."""
    label_probs: LabelProbs
    """The final probability of each label."""
    steps: tuple[Step, ...] = ()
    """The trajectory, first stage first."""


@dataclass(frozen=True, slots=True)
class TracedEntity:
    """A predicted entity and its candidates."""

    entity: Entity[WordSpan]
    candidate: Candidate
    """Of a discontinuous entity, the candidate of its first fragment."""
    right: bool | None = None
    """Whether gold has this span and label; None without gold."""
    remark: str = ""
    """What is wrong with it, as text."""
    more: tuple[Candidate, ...] = ()
    """The candidates of the other fragments."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, from left to right."""
        return (self.candidate, *self.more)


class Reason(Enum):
    """Why an entity was missed."""

    GAP = "gap"
    UNKNOWN_LABEL = "unknown-label"
    NO_CANDIDATE = "no-candidate"
    BOUNDARIES = "boundaries"
    DROPPED = "dropped"
    NO_ENTITY = "no-entity"
    OTHER_LABEL = "other-label"
    SAME_SPAN = "same-span"
    THRESHOLD = "threshold"
    CROSSING = "crossing"
    SUPPRESSED = "suppressed"
    PART = "part"
    LINKS = "links"


@dataclass(frozen=True, slots=True)
class MissedEntity:
    """A gold entity that was not predicted, and the candidate nearest to it."""

    entity: Entity[WordSpan]
    nearest: Candidate | None
    """The candidate whose final span overlaps it most; None if there is none."""
    reason: Reason
    why: str
    """The reason as text."""


@dataclass(frozen=True, slots=True)
class TracedSentence:
    """A sentence with its predicted and its missed entities."""

    sentence: Sentence
    found: tuple[TracedEntity, ...]
    gold: tuple[Entity[WordSpan], ...] | None = None
    """The gold entities; None without gold."""
    missed: tuple[MissedEntity, ...] = ()

    @property
    def candidates(self) -> Iterator[Candidate]:
        """All candidates that are shown: of predicted entities, then of missed ones."""
        yield from (each for found in self.found for each in found.candidates)
        yield from (missed.nearest for missed in self.missed if missed.nearest is not None)

    @property
    def is_flawless(self) -> bool:
        """Whether there are no known errors."""
        return not self.missed and all(found.right is not False for found in self.found)


@dataclass(frozen=True, slots=True)
class TracedDocument:
    """A document as traced sentences."""

    document: Document
    sentences: tuple[TracedSentence, ...]
    misfits: tuple[Entity[CharSpan], ...] = ()
    """Gold entities that do not begin and end at word boundaries of one sentence."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages, first stage first; the same for all candidates."""
        candidates = (each for sentence in self.sentences for each in sentence.candidates)
        first = next(candidates, None)
        return () if first is None else tuple(step.name for step in first.steps)

    @property
    def is_flawless(self) -> bool:
        """Whether there are no known errors."""
        return not self.misfits and all(sentence.is_flawless for sentence in self.sentences)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; ends are exclusive."""
        return {
            "id": self.document.id,
            "text": self.document.text,
            "sentences": [_sentence_json(sentence) for sentence in self.sentences],
            "misfits": [_entity_json(entity) for entity in self.misfits],
        }


def _sentence_json(sentence: TracedSentence) -> dict[str, Any]:
    gold = sentence.gold
    return {
        "words": list(sentence.sentence.words),
        "char_starts": list(sentence.sentence.starts),
        "gold": None if gold is None else [_entity_json(entity) for entity in gold],
        "found": [
            {
                **_entity_json(found.entity),
                "score": _rounded(found.entity.score),
                "right": found.right,
                "remark": found.remark,
                **_probs_json(found.candidate.label_probs),
                "steps": [_step_json(step) for step in found.candidate.steps],
                **({"more": [_candidate_json(each) for each in found.more]} if found.more else {}),
            }
            for found in sentence.found
        ],
        "missed": [
            {
                **_entity_json(missed.entity),
                "reason": missed.reason.value,
                "why": missed.why,
                "nearest": None if missed.nearest is None else _candidate_json(missed.nearest),
            }
            for missed in sentence.missed
        ],
    }


def _entity_json(entity: Entity[WordSpan] | Entity[CharSpan]) -> dict[str, Any]:
    place = {"start": entity.span.start, "end": entity.span.end, "label": entity.label}
    fragments = [[span.start, span.end] for span in entity.fragments]
    return {**place, "fragments": fragments} if fragments else place


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    return {
        "start": candidate.span.start,
        "end": candidate.span.end,
        **_probs_json(candidate.label_probs),
        "steps": [_step_json(step) for step in candidate.steps],
    }


def _step_json(step: Step) -> dict[str, Any]:
    place = {"stage": step.name, "start": _rounded(step.start), "end": _rounded(step.end)}
    score = {} if step.score is None else {"score": _rounded(step.score)}
    probs = {} if step.label_probs is None else _probs_json(step.label_probs)
    return place | score | probs


def _probs_json(probs: LabelProbs) -> dict[str, Any]:
    """`no_entity` is a separate key, because labels can have any name."""
    labels = {label: _rounded(prob) for label, prob in probs.items() if label is not None}
    return {"no_entity": _rounded(probs[None]), "label_probs": labels}


def _rounded(value: float | None) -> float | None:
    """The value with six decimals."""
    return None if value is None else round(value, 6)
