"""Tracing: the trajectory of each predicted entity, and why gold entities were missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

import numpy as np

from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings
from spandet.inference.engine import to_numpy
from spandet.inference.linking import LINK_THRESHOLD, assemble
from spandet.inference.options import PredictOptions
from spandet.inference.recognizer import Recognizer
from spandet.tensors import Stage
from spandet.text import Document, Entity, Sentence, WordSpan
from spandet.viewing.traces import (
    Candidate,
    LabelProbs,
    MissedEntity,
    Reason,
    Step,
    TracedDocument,
    TracedEntity,
    TracedSentence,
)

__all__ = [
    "Candidate",
    "MissedEntity",
    "Reason",
    "Step",
    "TracedDocument",
    "TracedEntity",
    "TracedSentence",
    "trace",
]

_Key = tuple[WordSpan, str]
_Obstacle = tuple[int | None, Reason, str]
"""Index of the nearest candidate, and why it did not become the entity."""
_ALL = {"threshold": 0.0}
_OPEN = {**_ALL, "flat": False, "crossing": "keep", "nms_decay": 1.0}
"""Changes of the decoding settings that switch off threshold and suppression."""


def trace(
    recognizer: Recognizer,
    document: Document,
    *,
    gold: bool = False,
    min_score: float | None = None,
) -> TracedDocument:
    """Predict the entities of a document, each with its trajectory through the detector's stages.

    Args:
        recognizer: The model; every detector can be traced.
        document: The document to predict.
        gold: The entities of the document are gold annotations: mark each prediction as correct or
            not, and give for each missed entity the nearest candidate and the reason.
        min_score: Minimum score of an entity, in place of the tuned threshold.

    Raises:
        UsageError: the model is an ensemble, whose members have different stages.
    """
    if not recognizer.has_stages:
        raise UsageError("an ensemble cannot be traced; expected one of its members")
    by_sentence, misfits = document.entities_in_words()
    examples = recognizer.tagged(recognizer.examples_of(document))
    rows = zip(document.sentences, examples, by_sentence, strict=True)
    decoding = recognizer.decoding_for(PredictOptions.of(min_score=min_score))
    sentences = tuple(
        _traced(_TracedCandidates(recognizer, example, decoding), sentence, own if gold else None)
        for sentence, example, own in rows
    )
    return TracedDocument(document, sentences, tuple(misfits) if gold else ())


def _traced(
    candidates: _TracedCandidates, sentence: Sentence, gold: Sequence[Entity[WordSpan]] | None
) -> TracedSentence:
    if gold is None:
        return TracedSentence(
            sentence,
            tuple(TracedEntity(entity, one, more=more) for entity, one, more in candidates.found),
        )
    wanted = tuple(dict.fromkeys(gold))  # an entity given twice is one
    keys = {(entity.spans, entity.label) for entity in wanted}
    found = [
        TracedEntity(entity, one, right, "" if right else _remark(entity, wanted), more)
        for entity, one, more in candidates.found
        for right in [(entity.spans, entity.label) in keys]
    ]
    hits = {(traced.entity.spans, traced.entity.label) for traced in found if traced.right}
    missed = (
        _missed(candidates, entity) for entity in wanted if (entity.spans, entity.label) not in hits
    )
    return TracedSentence(sentence, tuple(found), wanted, tuple(missed))


def _remark(entity: Entity[WordSpan], gold: Sequence[Entity[WordSpan]]) -> str:
    """The error of a prediction that is not gold."""
    same = [other.label for other in gold if other.spans == entity.spans]
    if same:
        return f"right span, wrong type: gold is {' and '.join(same)}"
    if any(other.label == entity.label and other.span.overlaps(entity.span) for other in gold):
        return "right type, wrong boundaries"
    return "nothing like it in gold"


def _missed(candidates: _TracedCandidates, entity: Entity[WordSpan]) -> MissedEntity:
    index, reason, why = _obstacle(candidates, entity)
    nearest = None if index is None else candidates.candidate(index)
    return MissedEntity(entity, nearest, reason, why)


def _obstacle(candidates: _TracedCandidates, entity: Entity[WordSpan]) -> _Obstacle:
    """The first reason why an entity was missed."""
    index = candidates.nearest(entity)
    if entity.fragments and candidates.arrays.links is None:
        return index, Reason.GAP, "it has a gap, and a candidate has none"
    if entity.label not in candidates.labels:
        return index, Reason.UNKNOWN_LABEL, f"the model does not know the label {entity.label}"
    if entity.fragments:
        return _obstacle_of_fragments(candidates, entity)
    obstacle = _obstacle_of_span(candidates, entity, candidates.threshold)
    return obstacle or (index, Reason.PART, "taken for a part of something else")


def _obstacle_of_span(
    candidates: _TracedCandidates, entity: Entity[WordSpan], threshold: float
) -> _Obstacle | None:
    """Why no candidate on these words was decoded with this label; None if one was."""
    index = candidates.nearest(entity)
    if index is None:
        return None, Reason.NO_CANDIDATE, "no candidate overlaps it"
    rejection = candidates.rejection(index, entity.label, threshold)
    if candidates.span(index) == entity.span:
        return None if rejection is None else (index, *rejection)
    end = "this one was emitted" if rejection is None else f"this one: {rejection[1]}"
    return index, Reason.BOUNDARIES, f"no candidate ended on exactly these words; {end}"


def _obstacle_of_fragments(candidates: _TracedCandidates, entity: Entity[WordSpan]) -> _Obstacle:
    """Why a fragment was not decoded or, if all were, why they did not become this entity."""
    fragments = [Entity(span, entity.label) for span in entity.fragments]
    for fragment in fragments:
        # The threshold applies to the score of the entity, not to that of a fragment.
        missing = _obstacle_of_span(candidates, fragment, 0.0)
        if missing is not None:
            index, reason, why = missing
            return index, reason, f"its fragment “{candidates.words_of(fragment.span)}”: {why}"
    return candidates.nearest(fragments[0]), *candidates.why_not_linked(entity)


class _TracedCandidates:
    """All candidates of one sentence with their trajectories, and the results of decoding."""

    def __init__(
        self, recognizer: Recognizer, example: Example, decoding: DecodingSettings
    ) -> None:
        self.recognizer = recognizer
        self.decoding = decoding
        self.labels = recognizer.labels
        self.words = example.words
        # In the precision of scores, so that both sides of a comparison are rounded equally.
        self.threshold = float(np.float32(decoding.threshold))
        # A sentence alone needs no padding, so that all its candidates are real ones.
        predictions = recognizer.engine.detect([example], keep_all=True)
        self.trace = predictions.trace
        self.arrays = to_numpy(predictions)
        self.kept: list[bool] = self.arrays.mask[0].tolist()
        self.spans: list[list[int]] = self.arrays.spans[0].tolist()
        self.probs: list[list[float]] = self.arrays.label_probs[0].tolist()

    @property
    def found(self) -> Iterator[tuple[Entity[WordSpan], Candidate, tuple[Candidate, ...]]]:
        """The predictions from left to right, each with its first candidate and the others."""
        for decoded in assemble(self.arrays, self.decoding):
            first, *more = map(self.candidate, decoded.origins)
            yield self.recognizer.entity(decoded), first, tuple(more)

    def words_of(self, span: WordSpan) -> str:
        """The words of a span, separated by spaces."""
        return " ".join(self.words[span.start : span.end])

    def span(self, index: int) -> WordSpan:
        """The final span of a candidate."""
        return WordSpan(*self.spans[index])

    def candidate(self, index: int) -> Candidate:
        """A candidate with its trajectory."""
        steps = tuple(self._step(stage, index) for stage in self.trace)
        return Candidate(self.span(index), self._named(self.probs[index]), steps)

    def nearest(self, entity: Entity[WordSpan]) -> int | None:
        """The candidate whose final span overlaps an entity most.

        Among equals one that was not dropped, then the one most probable for the entity's label.
        """
        number = self._number(entity.label)
        best, nearest = (0.0, False, 0.0), None
        for index, kept in enumerate(self.kept):
            if not kept and not self._is_span(index):
                continue
            probability = self.probs[index][number] if number else 0.0
            rank = (_overlap(self.span(index), entity.span), kept, probability)
            if rank[0] and rank > best:
                best, nearest = rank, index
        return nearest

    def rejection(self, index: int, label: str, threshold: float) -> tuple[Reason, str] | None:
        """Why a candidate is not decoded with this label; None if it is."""
        probs = self.probs[index]
        own = self._alone(index)
        score = self._first_score(index)
        # Without the score of a stage, the probabilities explain more.
        if not self.kept[index] and (score or own is not None):
            return Reason.DROPPED, f"dropped early{score}"
        against = f"against {probs[self._number(label)]:.2f}"
        if own is None:
            why = f"“no entity” was more probable ({probs[0]:.2f} {against})"
            return Reason.NO_ENTITY, why
        if own != label:
            why = f"taken for {own} ({probs[self._number(own)]:.2f} {against})"
            return Reason.OTHER_LABEL, why
        return self._suppression((self.span(index), label), threshold)

    def _alone(self, index: int) -> str | None:
        """The label that a candidate would get if there were no other; None for "no entity"."""
        one = slice(index, index + 1)
        spans, probs = self.arrays.spans[:, one], self.arrays.label_probs[:, one]
        only = Candidates(spans, probs, np.ones((1, 1), dtype=bool))
        found = self.recognizer.entities(only, self._decoding(_OPEN))
        return next((entity.label for _, entity in found), None)

    def _suppression(self, key: _Key, threshold: float) -> tuple[Reason, str] | None:
        """The first rule of decoding that removes a candidate; None if it is decoded."""
        if key not in self._merged:
            (other,) = (label for span, label in self._merged if span == key[0])
            return Reason.SAME_SPAN, f"another candidate on the same words won, as {other}"
        if self._merged[key] <= threshold:
            return Reason.THRESHOLD, _below(self._merged[key], threshold)
        if self._decoded.get(key, 0.0) > threshold:
            return None
        if self.decoding.flat:
            return Reason.SUPPRESSED, "flat: it shares words with a higher-scoring candidate"
        if key not in self._uncrossed or self._crosses_decoded(key[0], threshold):
            return Reason.CROSSING, "it crosses another candidate"
        return Reason.SUPPRESSED, "Soft-NMS: it overlaps a higher-scoring candidate too much"

    def _crosses_decoded(self, span: WordSpan, threshold: float) -> bool:
        """Whether a span crosses a decoded one, and crossing is not allowed."""
        if self.decoding.crossing == "keep":
            return False
        decoded = (other for (other, _), score in self._decoded.items() if score > threshold)
        return any(map(span.crosses, decoded))

    def why_not_linked(self, entity: Entity[WordSpan]) -> tuple[Reason, str]:
        """Why fragments that were all decoded did not become this entity."""
        key = (entity.spans, entity.label)
        for _, other in self.recognizer.entities(self.arrays, self._decoding(_ALL)):
            if (other.spans, other.label) == key:
                return Reason.THRESHOLD, _below(other.score or 0.0, self.threshold)
        nearest = [self.nearest(Entity(span, entity.label)) for span in entity.fragments]
        links = self.arrays.links
        assert links is not None  # noqa: S101 (called only for candidates with links)
        link = min(links.together[0, a, b].item() for a, b in combinations(nearest, 2))
        if link > LINK_THRESHOLD:
            return Reason.LINKS, "its fragments were linked with others as well"
        return Reason.LINKS, f"its fragments were not linked ({link:.2f})"

    @cached_property
    def _merged(self) -> Mapping[_Key, float]:
        return self._scores(_OPEN)

    @cached_property
    def _uncrossed(self) -> Mapping[_Key, float]:
        return self._scores({**_ALL, "flat": False, "nms_decay": 1.0})

    @cached_property
    def _decoded(self) -> Mapping[_Key, float]:
        return self._scores(_ALL)

    def _scores(self, changes: Mapping[str, object]) -> Mapping[_Key, float]:
        """The decoded spans with their scores, without linking."""
        spans = replace(self.arrays, links=None)
        found = self.recognizer.entities(spans, self._decoding(changes))
        return {(entity.span, entity.label): entity.score or 0.0 for _, entity in found}

    def _decoding(self, changes: Mapping[str, object]) -> DecodingSettings:
        return self.decoding.model_copy(update=changes)

    def _is_span(self, index: int) -> bool:
        """Whether the final span is not empty; detectors leave invalid candidates empty."""
        start, end = self.spans[index]
        return start < end

    def _first_score(self, index: int) -> str:
        """The first score of a candidate, for a message; empty if no stage predicts one."""
        for stage in self.trace:
            if stage.scores is not None:
                return f" ({stage.name} score {stage.scores[0, index].item():.2f})"
        return ""

    def _number(self, label: str) -> int:
        """The id of a label; 0 for an unknown one."""
        return self.labels.index(label) + 1 if label in self.labels else 0

    def _step(self, stage: Stage, index: int) -> Step:
        start, end = stage.spans[0, index].tolist()
        score = None if stage.scores is None else stage.scores[0, index].item()
        probs = stage.label_probs
        named = None if probs is None else self._named(probs[0, index].tolist())
        return Step(stage.name, start, end, score, named)

    def _named(self, probs: Sequence[float]) -> LabelProbs:
        return dict(zip((None, *self.labels), probs, strict=True))


def _below(score: float, threshold: float) -> str:
    return f"below the threshold ({score:.2f}, needed more than {threshold:.2f})"


def _overlap(one: WordSpan, other: WordSpan) -> float:
    """Intersection over union, in words."""
    shared = max(0, min(one.end, other.end) - max(one.start, other.start))
    return shared / (len(one) + len(other) - shared)
