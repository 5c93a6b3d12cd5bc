"""Documents and entities as dictionaries of plain values, for JSON, HTTP, pandas and datasets.

    {"id": "a1", "text": "IL-2 gene", "entities": [
        {"start": 0, "end": 4, "label": "protein", "score": 0.93, "text": "IL-2"}]}

Offsets count characters, half-open. `id` and `score` are present if they are known, `fragments`
([[start, end], …]) if the entity is discontinuous.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spandet.text.entity import CharSpan, Entity

if TYPE_CHECKING:
    from spandet.text.document import Document


def document_to_dict(document: Document) -> dict[str, Any]:
    """Convert a document's id, text and entities."""
    result: dict[str, Any] = {} if document.id is None else {"id": document.id}
    result["text"] = document.text
    result["entities"] = [
        entity_to_dict(entity, document.text_of(entity)) for entity in document.entities
    ]
    return result


def entity_to_dict(entity: Entity[CharSpan], text: str | None = None) -> dict[str, Any]:
    """Convert an entity; `text` is its surface text, if wanted."""
    result: dict[str, Any] = {
        "start": entity.span.start,
        "end": entity.span.end,
        "label": entity.label,
    }
    if entity.score is not None:
        result["score"] = entity.score
    if text is not None:
        result["text"] = text
    if entity.fragments:
        result["fragments"] = [[span.start, span.end] for span in entity.fragments]
    return result


def to_records(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """Convert documents to a table with one row per entity and the same columns in each row.

    Columns: `document` (its number in the stream, from 0), `id`, `start`, `end`, `label`, `score`,
    `text`, `fragments` (at least one [start, end]); an unknown value is None. The result can be
    passed to `pandas.DataFrame` or `datasets.Dataset.from_list`. A document without entities has
    no row.
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
            "fragments": [[span.start, span.end] for span in entity.spans],
        }
        for number, document in enumerate(documents)
        for entity in document.entities
    ]
