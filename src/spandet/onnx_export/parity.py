"""The parity gate: does an exported model find what the model in torch finds?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spandet.text import CharSpan, Document, Entity

SCORE_BOUND = 1e-4
"""How far scores may be apart."""
_SHOWN = 3

_Key = tuple[tuple[CharSpan, ...], str]


@dataclass(frozen=True)
class Parity:
    """What came out of comparing two models on the same documents."""

    documents: int
    entities: int
    """That both find."""
    largest: float
    """How far the scores of one entity are apart at most."""
    ties: int
    """Entities that only one finds because something was as good, or just at the threshold."""
    different: tuple[str, ...]
    """Entities that only one finds for no such reason."""
    bound: float

    @property
    def passed(self) -> bool:
        """Do they agree? Models that find nothing have nothing to agree on."""
        return self.entities > 0 and not self.different and self.largest <= self.bound

    @property
    def reason(self) -> str:
        """Why it did not pass, in words."""
        if self.different:
            some = "; ".join(self.different[:_SHOWN])
            return f"{len(self.different):,} entities are found by one of both only: {some}"
        if not self.entities:
            return "the model found nothing, so there was nothing to compare: give it other --data"
        return f"scores are up to {self.largest:.1e} apart, more than {self.bound:.0e}"

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
    """Entities must be the same, up to ties, and their scores nearly so.

    Args:
        expected: What torch finds.
        found: What the exported model finds in the same documents.
        threshold: From which score on something is an entity.
        bound: How far scores may be apart.
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
        for entity, who, rivals in _lonely(*only):
            if _is_tie(entity, rivals, threshold, bound):
                ties += 1
            else:
                different.append(f"{who}: {_described(entity, one)}")
    return Parity(documents, entities, largest, ties, tuple(different), bound)


def _lonely(
    ours: Sequence[Entity[CharSpan]], theirs: Sequence[Entity[CharSpan]]
) -> Iterator[tuple[Entity[CharSpan], str, Sequence[Entity[CharSpan]]]]:
    """Every entity that only one side has, with those that only the other side has."""
    yield from ((entity, "torch", theirs) for entity in ours)
    yield from ((entity, "onnx", ours) for entity in theirs)


def _is_tie(
    entity: Entity[CharSpan],
    rivals: Sequence[Entity[CharSpan]],
    threshold: float,
    bound: float,
) -> bool:
    """Could rounding alone have made the difference?"""
    score = _score(entity)
    if abs(score - threshold) <= bound:
        return True
    return any(
        abs(score - _score(rival)) <= bound and rival.span.overlaps(entity.span) for rival in rivals
    )


def _by_key(document: Document) -> dict[_Key, Entity[CharSpan]]:
    return {(entity.pieces, entity.label): entity for entity in document.entities}


def _score(entity: Entity[CharSpan]) -> float:
    return entity.score or 0.0


def _described(entity: Entity[CharSpan], document: Document) -> str:
    span = entity.span
    return f"{document.text[span.start : span.end]!r} as {entity.label} ({_score(entity):.4f})"
