"""Documents as plain dictionaries and tables."""

from __future__ import annotations

import json

from spandet import to_records
from spandet.formats.jsonl import document_of, record_of
from spandet.text import CharSpan, Document, Entity
from spandet.text.dicts import document_to_dict

TEXT = "alpha and beta chain"
GAPPED = Entity.from_fragments([CharSpan(0, 5), CharSpan(15, 20)], "protein", 0.5)
DOCUMENT = Document(TEXT, (Entity(CharSpan(10, 20), "protein"), GAPPED), "d1")


def test_a_document_as_plain_values() -> None:
    assert document_to_dict(DOCUMENT) == {
        "id": "d1",
        "text": TEXT,
        "entities": [
            {"start": 10, "end": 20, "label": "protein", "text": "beta chain"},
            {
                "start": 0,
                "end": 20,
                "label": "protein",
                "score": 0.5,
                "text": "alpha … chain",
                "fragments": [[0, 5], [15, 20]],
            },
        ],
    }
    assert DOCUMENT.to_dict() == document_to_dict(DOCUMENT)
    assert document_to_dict(Document("")) == {"text": "", "entities": []}


def test_the_native_reader_reads_it_back() -> None:
    assert document_of(json.loads(json.dumps(DOCUMENT.to_dict()))) == DOCUMENT


def test_the_native_record_has_the_same_entities_without_their_words() -> None:
    plain = DOCUMENT.to_dict()
    for entity in plain["entities"]:
        del entity["text"]
    assert record_of(DOCUMENT) == plain


def test_a_table_has_one_row_per_entity_and_every_column_in_each() -> None:
    rows = to_records([Document("nothing here"), DOCUMENT])
    assert [(row["document"], row["id"], row["text"]) for row in rows] == [
        (1, "d1", "beta chain"),
        (1, "d1", "alpha … chain"),
    ]
    assert {tuple(row) for row in rows} == {
        ("document", "id", "start", "end", "label", "score", "text", "fragments")
    }
    assert [row["fragments"] for row in rows] == [[[10, 20]], [[0, 5], [15, 20]]]
