"""How entities came about, as plain values: what a terminal, a page and a program are shown.

Spans are half-open and counted in words of their sentence, as everywhere; only what is printed for
people names the last word instead (see `case_study`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spandet.text import CharSpan, Document, Entity, Sentence, WordSpan

LabelProbs = Mapping[str | None, float]
"""How likely each label is; None stands for "no entity"."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage: boundaries in words, which may lie between words, and what was believed."""

    name: str
    start: float
    end: float
    score: float | None = None
    """How sure the stage was that there is an entity, where it says so."""
    label_probs: LabelProbs | None = None
    """How likely each label was, where the stage says so."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that the detector considered, and the stages that led to it."""

    span: WordSpan
    """Where it ended."""
    label_probs: LabelProbs
    """How likely each label was in the end."""
    steps: tuple[Step, ...] = ()
    """First stage first."""


@dataclass(frozen=True, slots=True)
class TracedEntity:
    """An entity that was found, and how."""

    entity: Entity[WordSpan]
    candidate: Candidate
    """For an entity in pieces, that of its first one."""
    right: bool | None = None
    """Is it in the gold, with this span and label? None without gold."""
    remark: str = ""
    """What is wrong with it, in a few words."""
    more: tuple[Candidate, ...] = ()
    """Those of its later pieces."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All of them, from left to right."""
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
    """A gold entity that was not found, and what came nearest to it."""

    entity: Entity[WordSpan]
    nearest: Candidate | None
    """The candidate that overlaps it most in the end; None where none does."""
    reason: Reason
    why: str
    """The reason in plain words."""


@dataclass(frozen=True, slots=True)
class TracedSentence:
    """A sentence with what was found and what was missed in it."""

    sentence: Sentence
    found: tuple[TracedEntity, ...]
    gold: tuple[Entity[WordSpan], ...] | None = None
    """What should have been found; None where nobody says."""
    missed: tuple[MissedEntity, ...] = ()

    @property
    def candidates(self) -> Iterator[Candidate]:
        """Every candidate that is shown: those found, then those nearest to what was missed."""
        yield from (each for found in self.found for each in found.candidates)
        yield from (missed.nearest for missed in self.missed if missed.nearest is not None)

    @property
    def is_flawless(self) -> bool:
        """Is nothing known to be wrong?"""
        return not self.missed and all(found.right is not False for found in self.found)


@dataclass(frozen=True, slots=True)
class TracedDocument:
    """A document, sentence by sentence."""

    document: Document
    sentences: tuple[TracedSentence, ...]
    misfits: tuple[Entity[CharSpan], ...] = ()
    """Gold entities that no run of words is: out of every detector's reach."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages, first stage first; the same for all candidates."""
        candidates = (each for sentence in self.sentences for each in sentence.candidates)
        first = next(candidates, None)
        return () if first is None else tuple(step.name for step in first.steps)

    @property
    def is_flawless(self) -> bool:
        """Is nothing known to be wrong?"""
        return not self.misfits and all(sentence.is_flawless for sentence in self.sentences)

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs; ends are exclusive."""
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
                "score": _short(found.entity.score),
                "right": found.right,
                "remark": found.remark,
                **_beliefs_json(found.candidate.label_probs),
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
    pieces = [[piece.start, piece.end] for piece in entity.fragments]
    return {**place, "fragments": pieces} if pieces else place


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    return {
        "start": candidate.span.start,
        "end": candidate.span.end,
        **_beliefs_json(candidate.label_probs),
        "steps": [_step_json(step) for step in candidate.steps],
    }


def _step_json(step: Step) -> dict[str, Any]:
    place = {"stage": step.name, "start": _short(step.start), "end": _short(step.end)}
    score = {} if step.score is None else {"score": _short(step.score)}
    beliefs = {} if step.label_probs is None else _beliefs_json(step.label_probs)
    return place | score | beliefs


def _beliefs_json(probs: LabelProbs) -> dict[str, Any]:
    """What is no entity has a key of its own, because a label could have any name."""
    labels = {label: _short(prob) for label, prob in probs.items() if label is not None}
    return {"no_entity": _short(probs[None]), "label_probs": labels}


def _short(value: float | None) -> float | None:
    """As many digits as mean something."""
    return None if value is None else round(value, 6)
