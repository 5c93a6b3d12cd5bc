"""Traces made by hand, for tests of their display."""

from __future__ import annotations

from collections.abc import Sequence

from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan
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

Place = tuple[float, float]


def probs(label: str | None, prob: float) -> LabelProbs:
    rest = [name for name in (None, "CEL", "DNA") if name != label]
    return {label: prob} | dict.fromkeys(rest, (1 - prob) / 2)


def candidate(
    start: int, end: int, label: str | None, *places: Place, prob: float = 0.9
) -> Candidate:
    """A candidate with these boundaries per stage, first stage first; its score increases."""
    steps = [
        Step(
            f"stage {i}",
            *place,
            score=0.5 if i == 0 else None,
            label_probs=probs(label, prob - 0.1 * (len(places) - i)) if i else None,
        )
        for i, place in enumerate(places)
    ]
    return Candidate(WordSpan(start, end), probs(label, prob), tuple(steps))


def found(
    start: int, end: int, label: str, *places: Place, right: bool | None = None, remark: str = ""
) -> TracedEntity:
    entity = Entity(WordSpan(start, end), label, 0.9)
    return TracedEntity(entity, candidate(start, end, label, *places), right, remark)


def sentence(
    words: Sequence[str],
    found: Sequence[TracedEntity] = (),
    missed: Sequence[MissedEntity] | None = None,
    *,
    id: str | None = None,  # noqa: A002
) -> TracedDocument:
    """A document of one sentence; without `missed` there is no gold."""
    gold = None
    if missed is not None:
        hits = [each.entity for each in found if each.right]
        gold = (*hits, *(each.entity for each in missed))
    document = Document.from_rows([WordRow(words)], id=id)
    traced = TracedSentence(document.sentences[0], tuple(found), gold, tuple(missed or ()))
    return TracedDocument(document, (traced,))


def found_in_fragments(
    label: str, *candidates: Candidate, right: bool | None = None
) -> TracedEntity:
    """An entity with one fragment per candidate."""
    entity = Entity.from_fragments([each.span for each in candidates], label, 0.9)
    return TracedEntity(entity, candidates[0], right, more=candidates[1:])


WORDS = ("Growth", "of", "liver", "cells", "needs", "the", "[Ca]", "FGF-2", "gene", ".")
FOUND = (
    found(2, 4, "CEL", (2.87, 4.01), (2.46, 4.06)),
    found(7, 9, "DNA", (7.5, 9.0), (7.004, 8.996)),
)
PLAIN = sentence(WORDS, FOUND)

IN_FRAGMENTS = sentence(
    WORDS,
    [
        found_in_fragments(
            "CEL",
            candidate(0, 1, "CEL", (0.2, 1.1)),
            candidate(2, 4, "CEL", (2.5, 4.0)),
            right=True,
        )
    ],
    [
        MissedEntity(
            Entity.from_fragments([WordSpan(5, 6), WordSpan(7, 8)], "DNA"),
            candidate(7, 8, "DNA", (6.9, 8.0)),
            Reason.LINKS,
            "its fragments were not linked (0.30)",
        )
    ],
)

WITH_GOLD = TracedDocument(
    Document.from_rows(
        [WordRow(WORDS, [Entity(WordSpan(2, 4), "CEL"), Entity(WordSpan(7, 8), "PRO")])], id="d1"
    ),
    (
        TracedSentence(
            PLAIN.document.sentences[0],
            (
                found(2, 4, "CEL", (2.87, 4.01), (2.46, 4.06), right=True),
                found(
                    7,
                    9,
                    "DNA",
                    (7.5, 9.0),
                    (7.004, 8.996),
                    right=False,
                    remark="nothing like it in gold",
                ),
            ),
            (
                Entity(WordSpan(2, 4), "CEL"),
                Entity(WordSpan(3, 4), "CEL"),
                Entity(WordSpan(7, 8), "DNA"),
            ),
            (
                MissedEntity(
                    Entity(WordSpan(3, 4), "CEL"),
                    None,
                    Reason.NO_CANDIDATE,
                    "no candidate overlaps it",
                ),
                MissedEntity(
                    Entity(WordSpan(7, 8), "DNA"),
                    candidate(7, 8, None, (6.9, 8.0), (7.0, 8.0)),
                    Reason.NO_ENTITY,
                    "“no entity” was more probable (0.90 against 0.05)",
                ),
            ),
        ),
    ),
    (Entity(CharSpan(0, 3), "PRO"),),
)
