"""Label Studio's JSON, after its public description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity

TEXT = "Zoe met\nOle 🎈 Berg"


def result(start: int, end: int, *labels: str, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": TEXT[start:end], "labels": list(labels)}
    names = {"id": "x", "from_name": "label", "to_name": "text", "type": "labels"}
    return names | {"value": value} | more


def documents(folder: Path, *tasks: Any) -> list[Document]:
    path = folder / "project.json"
    path.write_text(json.dumps(tasks, indent=1))
    return list(read(path))


def task(**fields: Any) -> dict[str, Any]:
    return {"id": 12, "data": {"text": TEXT}} | fields


def test_the_first_annotation_that_is_not_cancelled_counts(tmp_path: Path) -> None:
    annotations = [
        {"was_cancelled": True, "result": [result(0, 3, "NO")]},
        {"was_cancelled": False, "result": [result(0, 3, "PER", "STAR"), result(8, 18, "PER")]},
        {"result": [result(0, 3, "NO")]},
    ]
    predictions = [{"result": [result(0, 3, "NO")]}]
    (document,) = documents(tmp_path, task(annotations=annotations, predictions=predictions))
    assert document.id == "12"
    assert [(document.text_of(e), e.label, e.score) for e in document.entities] == [
        ("Zoe", "PER", None),
        ("Zoe", "STAR", None),
        ("Ole 🎈 Berg", "PER", None),
    ]


@pytest.mark.parametrize("annotations", [[], [{"was_cancelled": True, "result": []}]])
def test_predictions_are_read_if_there_are_no_annotations(
    tmp_path: Path, annotations: list[Any]
) -> None:
    results = [result(0, 3, "PER", score=0.75), result(8, 11, "PER")]
    predictions = [{"score": 0.5, "result": results}, {"result": []}]
    (document,) = documents(tmp_path, task(annotations=annotations, predictions=predictions))
    assert [entity.score for entity in document.entities] == [0.75, 0.5]


def test_other_results_are_skipped_and_data_is_kept(tmp_path: Path) -> None:
    other = {"type": "choices", "value": {"choices": ["good"]}}
    data = {"text": TEXT, "id": "doc-1", "source": "letter"}
    (document,) = documents(tmp_path, task(data=data, annotations=[{"result": [other]}]))
    assert document == Document(TEXT, (), "doc-1", {"source": "letter"})


def test_line_feeds_in_the_text_of_a_result_may_be_escaped(tmp_path: Path) -> None:
    escaped = result(0, 11, "X")
    escaped["value"]["text"] = "Zoe met\\nOle"
    (document,) = documents(tmp_path, task(annotations=[{"result": [escaped]}]))
    assert document.text_of(document.entities[0]) == "Zoe met\nOle"


def test_a_task_without_work_has_no_entities(tmp_path: Path) -> None:
    assert documents(tmp_path, {"data": {"text": "a"}}) == [Document("a")]


def test_written_as_label_studio_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    write(
        [
            Document("Zoe", (Entity(CharSpan(0, 3), "PER"),), "d", {"page": 3}),
            Document("Ole", (Entity(CharSpan(0, 3), "PER", 0.5),)),
        ],
        path,
        "label-studio",
    )
    first, second = json.loads(path.read_text())
    names = {"id": "0", "from_name": "label", "to_name": "text", "type": "labels"}
    zoe = {"start": 0, "end": 3, "text": "Zoe", "labels": ["PER"]}
    assert first == {
        "data": {"id": "d", "text": "Zoe", "page": 3},
        "annotations": [{"result": [names | {"value": zoe}]}],
    }
    assert second == {
        "data": {"text": "Ole"},
        "predictions": [
            {
                "model_version": "spandet",
                "result": [names | {"value": zoe | {"text": "Ole"}, "score": 0.5}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": {"txt": "a"}}, "text is missing, expected a string"),
        ({"data": None}, "data is null, expected an object"),
        ({"annotations": {}}, "annotations is {}, expected a list"),
        (
            {"annotations": [{"result": [result(0, 3, "PER"), result(3, 3, "PER")]}]},
            "annotation 0 result 1: start 3 is not before end 3",
        ),
        (
            {"predictions": [{"result": [result(0, 3, "PER", score=2)]}]},
            "prediction 0 result 0: score is 2, expected a number from 0 to 1",
        ),
        ({"annotations": [{"result": [result(0, 3)]}]}, "labels is empty, expected a label"),
        (
            {
                "annotations": [
                    {"result": [result(0, 3, "A") | {"value": {"start": 0, "end": 3}}]},
                ]
            },
            "annotation 0 result 0: labels is missing, expected a list",
        ),
        (
            {"data": {"text": "🎈" + TEXT}, "annotations": [{"result": [result(0, 3, "PER")]}]},
            'characters 0:3 are "\\ud83c\\udf88Zo", but its text is "Zoe"; offsets must count Un',
        ),
    ],
)
def test_invalid_records_are_errors_with_their_position(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "project.json"
    path.write_text("[\n" + json.dumps(task()) + ",\n" + json.dumps(task(**change)) + "]")
    with pytest.raises(FormatError) as caught:
        list(read(path, "label-studio"))
    assert str(caught.value).startswith(f"{path}:3: ")
    assert message in str(caught.value)


def test_what_the_format_cannot_represent_is_refused(tmp_path: Path) -> None:
    pieces = [CharSpan(0, 1), CharSpan(2, 3)]
    split = Document("Zoe", (Entity.from_fragments(pieces, "PER"),))
    with pytest.raises(FormatError, match=r"document 0: the PER entity .* is discontinuous"):
        write([split], tmp_path / "out.json", "label-studio")
    with pytest.raises(FormatError, match=r'the metadata "text" has the name of a field'):
        write([Document("Zoe", metadata={"text": 1})], tmp_path / "out.json", "label-studio")
