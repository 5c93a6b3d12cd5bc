"""What a person's annotation says of a prediction: hit, miss, false alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from spandet.errors import MismatchError
from spandet.text import CharSpan, Document, Entity


class Verdict(Enum):
    """Its value names it in pages; its symbol tells it apart without colour."""

    HIT = "hit"
    MISS = "miss"
    FALSE_ALARM = "alarm"

    @property
    def symbol(self) -> str:
        """One character that stands before the label."""
        return {"hit": "✓", "miss": "✗", "alarm": "+"}[self.value]

    def counted(self, count: int) -> str:
        """So many of them, in words."""
        one, more = {
            "hit": ("hit", "hits"),
            "miss": ("miss", "misses"),
            "alarm": ("false alarm", "false alarms"),
        }[self.value]
        return f"{count:,} {one if count == 1 else more}"


@dataclass(frozen=True, slots=True)
class Judged:
    """An entity to show; without a verdict where there is nothing to compare it with."""

    entity: Entity[CharSpan]
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One text with what should have been found in it and what was."""

    document: Document
    gold: tuple[Judged, ...]
    predicted: tuple[Judged, ...]

    @property
    def union(self) -> tuple[Judged, ...]:
        """Gold and predicted together; a hit counts once."""
        alarms = (judged for judged in self.predicted if judged.verdict is Verdict.FALSE_ALARM)
        return (*self.gold, *alarms)

    @property
    def counts(self) -> Counter[tuple[str, Verdict]]:
        """How many of each label and verdict; an entity given twice is one."""
        distinct = {
            (_identity(judged.entity), judged.verdict)
            for judged in self.union
            if judged.verdict is not None
        }
        return Counter((label, verdict) for (_, label), verdict in distinct)


def judge(gold: Document, predicted: Document) -> Comparison:
    """Compare by pieces and label.

    Raises:
        MismatchError: the two texts differ.
    """
    if gold.text != predicted.text:
        at = _first_difference(gold.text, predicted.text)
        raise MismatchError(
            f"document {gold.id or predicted.id or '(without an id)'}: the texts of gold and "
            f"predicted differ at character {at}: "
            f"{gold.text[at : at + 20]!r} and {predicted.text[at : at + 20]!r}"
        )
    wanted = {_identity(entity) for entity in gold.entities}
    found = {_identity(entity) for entity in predicted.entities}
    return Comparison(
        gold,
        _judged(gold.entities, found, Verdict.MISS),
        _judged(predicted.entities, wanted, Verdict.FALSE_ALARM),
    )


_Identity = tuple[tuple[CharSpan, ...], str]


def _identity(entity: Entity[CharSpan]) -> _Identity:
    return entity.pieces, entity.label


def _judged(
    entities: Iterable[Entity[CharSpan]], others: set[_Identity], otherwise: Verdict
) -> tuple[Judged, ...]:
    return tuple(
        Judged(entity, Verdict.HIT if _identity(entity) in others else otherwise)
        for entity in entities
    )


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
