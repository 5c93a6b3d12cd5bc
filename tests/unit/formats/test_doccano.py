"""Doccano's JSONL, after its public description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity

ZOE = (Entity(CharSpan(0, 3), "PER"), Entity(CharSpan(8, 11), "PER"))
LISTS = [[0, 3, "PER"], [8, 11, "PER"]]
OBJECTS = [
    {"id": 5, "label": "PER", "start_offset": 0, "end_offset": 3},
    {"id": 6, "label": "PER", "start_offset": 8, "end_offset": 11},
]


def documents(folder: Path, *records: Any) -> list[Document]:
    path = folder / "all.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return list(read(path))


@pytest.mark.parametrize("name", ["label", "labels"])
def test_both_names_of_the_list(tmp_path: Path, name: str) -> None:
    record = {"id": 7, "text": "Zoe met Ole", name: LISTS, "Comments": ["ok"], "page": 3}
    (document,) = documents(tmp_path, record)
    assert document == Document("Zoe met Ole", ZOE, "7", {"Comments": ["ok"], "page": 3})


def test_the_export_with_relations(tmp_path: Path) -> None:
    relations = [{"id": 0, "from_id": 5, "to_id": 6, "type": "knows"}]
    record = {"id": 7, "text": "Zoe met Ole", "entities": OBJECTS, "relations": relations}
    (document,) = documents(tmp_path, record)
    assert document == Document("Zoe met Ole", ZOE, "7", {"relations": relations})


def test_a_text_without_labels(tmp_path: Path) -> None:
    first, second = documents(tmp_path, {"text": "a", "label": []}, {"text": "b"})
    assert (first, second) == (Document("a"), Document("b"))


def test_written_as_doccano_reads_it(tmp_path: Path) -> None:
    scored = Entity(CharSpan(0, 3), "PER", 0.5)
    path = tmp_path / "out.jsonl"
    write([Document("Zoe", (scored,), "7", {"page": 3})], path, "doccano")
    assert path.read_text() == '{"id": 7, "text": "Zoe", "label": [[0, 3, "PER"]], "page": 3}\n'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": [[0, 3, "PER"], [3, 3, "X"]]}, "entity 1: start 3 is not before end 3"),
        ({"label": [[0, 4, "PER"]]}, "entity 0: 0:4 is outside the 3 characters of the text"),
        ({"label": [[0, 3]]}, "entity 0: found [0, 3], expected [start, end, label]"),
        ({"label": [[0, True, "X"]]}, 'found [0, true, "X"], expected [start, end, label]'),
        ({"label": ["PER"]}, 'entity 0: found "PER", expected [start, end, label]'),
        ({"label": "PER"}, 'label is "PER", expected a list'),
        ({"label": [], "entities": []}, "label and entities are both given"),
        ({"label": None, "entities": [{"label": "X"}]}, "entity 0: start_offset is missing"),
        ({"label": None, "entities": [3]}, "entity 0: it is 3, expected an object"),
        ({"text": None}, "text is missing, expected a string"),
        ({"id": 1.5}, "id is 1.5, expected a string or a whole number"),
        ({"id": True}, "id is true, expected a string or a whole number"),
    ],
)
def test_invalid_records_are_errors_with_their_position(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\n" + json.dumps({"id": 1, "text": "Zoe", "label": []} | change))
    with pytest.raises(FormatError) as caught:
        list(read(path, "doccano"))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


def test_what_the_format_cannot_represent_is_refused(tmp_path: Path) -> None:
    pieces = [CharSpan(0, 1), CharSpan(2, 3)]
    split = Document("Zoe", (Entity.from_fragments(pieces, "PER"),), "z")
    with pytest.raises(
        FormatError, match=r"document 'z': the PER entity at characters 0:3 is disc"
    ):
        write([split], tmp_path / "out.jsonl", "doccano")
    clash = Document("Zoe", metadata={"label": 1})
    with pytest.raises(FormatError, match=r'document 0: the metadata "label" has the name of a fi'):
        write([clash], tmp_path / "out.jsonl", "doccano")
    assert list(tmp_path.iterdir()) == []
