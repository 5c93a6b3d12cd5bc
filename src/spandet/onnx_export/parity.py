"""The parity check: an exported model must predict the same entities as the model in torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spandet.text import CharSpan, Document, Entity

SCORE_BOUND = 1e-4
"""Largest difference of scores."""
_SHOWN = 3

_Key = tuple[tuple[CharSpan, ...], str]


@dataclass(frozen=True)
class Parity:
    """The comparison of two models on the same documents."""

    documents: int
    entities: int
    """Entities that both models predict."""
    largest: float
    """Largest difference between the scores of an entity."""
    ties: int
    """Entities that only one model predicts, which rounding explains (see `compare`)."""
    different: tuple[str, ...]
    """Other entities that only one model predicts."""
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the models agree; models that predict nothing do not pass."""
        return self.entities > 0 and not self.different and self.largest <= self.bound

    @property
    def reason(self) -> str:
        """Why the check failed."""
        if self.different:
            some = "; ".join(self.different[:_SHOWN])
            return f"{len(self.different):,} entities are predicted by one model only: {some}"
        if not self.entities:
            return "the model predicts no entity, so nothing was compared: use other --data"
        return f"scores differ by up to {self.largest:.1e}, allowed are {self.bound:.0e}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "documents": self.documents,
            "entities": self.entities,
            "largest_score_difference": self.largest,
            "score_bound": self.bound,
            "ties": self.ties,
            "different": list(self.different),
            "passed": self.passed,
        }


def compare(
    expected: Iterable[Document],
    found: Iterable[Document],
    *,
    threshold: float,
    bound: float = SCORE_BOUND,
) -> Parity:
    """Compare entities and scores.

    An entity of one model only is a tie if its score is within `bound` of the threshold, or of that
    of an overlapping entity of the other model only.

    Args:
        expected: The predictions of torch.
        found: The predictions of the exported model for the same documents.
        threshold: The lowest score of an entity.
        bound: Largest difference of scores.
    """
    documents = entities = ties = 0
    largest = 0.0
    different: list[str] = []
    for one, other in zip(expected, found, strict=True):
        documents += 1
        ours, theirs = _by_key(one), _by_key(other)
        both = ours.keys() & theirs.keys()
        entities += len(both)
        largest = max([largest, *(abs(_score(ours[key]) - _score(theirs[key])) for key in both)])
        only = (
            [ours[key] for key in ours.keys() - both],
            [theirs[key] for key in theirs.keys() - both],
        )
        for entity, model, rivals in _of_one_model(*only):
            if _is_tie(entity, rivals, threshold, bound):
                ties += 1
            else:
                different.append(f"{model}: {_described(entity, one)}")
    return Parity(documents, entities, largest, ties, tuple(different), bound)


def _of_one_model(
    ours: Sequence[Entity[CharSpan]], theirs: Sequence[Entity[CharSpan]]
) -> Iterator[tuple[Entity[CharSpan], str, Sequence[Entity[CharSpan]]]]:
    """Every entity of one model only, with those of the other model only."""
    yield from ((entity, "torch", theirs) for entity in ours)
    yield from ((entity, "onnx", ours) for entity in theirs)


def _is_tie(
    entity: Entity[CharSpan],
    rivals: Sequence[Entity[CharSpan]],
    threshold: float,
    bound: float,
) -> bool:
    """Whether rounding explains why only one model predicts an entity."""
    score = _score(entity)
    if abs(score - threshold) <= bound:
        return True
    return any(
        abs(score - _score(rival)) <= bound and rival.span.overlaps(entity.span) for rival in rivals
    )


def _by_key(document: Document) -> dict[_Key, Entity[CharSpan]]:
    return {(entity.spans, entity.label): entity for entity in document.entities}


def _score(entity: Entity[CharSpan]) -> float:
    return entity.score or 0.0


def _described(entity: Entity[CharSpan], document: Document) -> str:
    span = entity.span
    return f"{document.text[span.start : span.end]!r} as {entity.label} ({_score(entity):.4f})"
