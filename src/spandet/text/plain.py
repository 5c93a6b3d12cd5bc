"""Documents as plain dictionaries: what JSON, HTTP, pandas and datasets see.

    {"id": "a1", "text": "IL-2 gene", "entities": [
        {"start": 0, "end": 4, "label": "protein", "score": 0.93, "text": "IL-2"}]}

Offsets count characters, half-open. `id` and `score` are there where they are known, `fragments`
([[start, end], …]) where an entity is discontinuous.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spandet.text.entity import Entity
from spandet.text.spans import CharSpan

if TYPE_CHECKING:
    from spandet.text.document import Document


def plain_document(document: Document) -> dict[str, Any]:
    """A document's id, text and entities."""
    plain: dict[str, Any] = {} if document.id is None else {"id": document.id}
    plain["text"] = document.text
    plain["entities"] = [
        plain_entity(entity, document.text_of(entity)) for entity in document.entities
    ]
    return plain


def plain_entity(entity: Entity[CharSpan], text: str | None = None) -> dict[str, Any]:
    """An entity, with its words if they are given."""
    plain: dict[str, Any] = {
        "start": entity.span.start,
        "end": entity.span.end,
        "label": entity.label,
    }
    if entity.score is not None:
        plain["score"] = entity.score
    if text is not None:
        plain["text"] = text
    if entity.fragments:
        plain["fragments"] = [[piece.start, piece.end] for piece in entity.fragments]
    return plain


def to_records(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """A table with one row per entity; every row has every column, None where nothing is known.

    Columns: `document` (its number in the stream, from 0), `id`, `start`, `end`, `label`, `score`,
    `text`, `fragments` (at least one [start, end]). `pandas.DataFrame(rows)` and
    `datasets.Dataset.from_list(rows)` take it as it is. A document without entities has no row.
    """
    return [
        {
            "document": number,
            "id": document.id,
            "start": entity.span.start,
            "end": entity.span.end,
            "label": entity.label,
            "score": entity.score,
            "text": document.text_of(entity),
            "fragments": [[piece.start, piece.end] for piece in entity.pieces],
        }
        for number, document in enumerate(documents)
        for entity in document.entities
    ]
