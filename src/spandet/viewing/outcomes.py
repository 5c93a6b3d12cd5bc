"""Predicted entities compared with gold: hits, misses and false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from spandet.errors import MismatchError
from spandet.text import CharSpan, Document, Entity


class Outcome(Enum):
    """Hit, miss or false alarm; the value is a CSS class."""

    HIT = "hit"
    MISS = "miss"
    FALSE_ALARM = "alarm"

    @property
    def symbol(self) -> str:
        """The character before the label."""
        return {"hit": "✓", "miss": "✗", "alarm": "+"}[self.value]

    def counted(self, count: int) -> str:
        """A number of them as text, such as "2 hits"."""
        one, more = {
            "hit": ("hit", "hits"),
            "miss": ("miss", "misses"),
            "alarm": ("false alarm", "false alarms"),
        }[self.value]
        return f"{count:,} {one if count == 1 else more}"


@dataclass(frozen=True, slots=True)
class ShownEntity:
    """An entity to show, with its outcome where gold and predictions are compared."""

    entity: Entity[CharSpan]
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The gold and the predicted entities of one document."""

    document: Document
    gold: tuple[ShownEntity, ...]
    predicted: tuple[ShownEntity, ...]

    @property
    def union(self) -> tuple[ShownEntity, ...]:
        """Gold and predicted entities together; hits are included once."""
        alarms = (each for each in self.predicted if each.outcome is Outcome.FALSE_ALARM)
        return (*self.gold, *alarms)

    @property
    def counts(self) -> Counter[tuple[str, Outcome]]:
        """The number of entities by label and outcome; duplicates count once."""
        distinct = {
            (_identity(each.entity), each.outcome)
            for each in self.union
            if each.outcome is not None
        }
        return Counter((label, outcome) for (_, label), outcome in distinct)


def compare_entities(gold: Document, predicted: Document) -> Comparison:
    """Compare the entities of two documents by fragments and label.

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
        _compared(gold.entities, found, Outcome.MISS),
        _compared(predicted.entities, wanted, Outcome.FALSE_ALARM),
    )


_Identity = tuple[tuple[CharSpan, ...], str]


def _identity(entity: Entity[CharSpan]) -> _Identity:
    return entity.spans, entity.label


def _compared(
    entities: Iterable[Entity[CharSpan]], others: set[_Identity], otherwise: Outcome
) -> tuple[ShownEntity, ...]:
    return tuple(
        ShownEntity(entity, Outcome.HIT if _identity(entity) in others else otherwise)
        for entity in entities
    )


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
