"""Label Studio's JSON list of tasks: a text each, offsets in characters, half-open.

    [{"data": {"id": "a1", "text": "Zoe met Ole"}, "annotations": [{"result": [
      {"id": "0", "from_name": "label", "to_name": "text", "type": "labels",
       "value": {"start": 0, "end": 3, "text": "Zoe", "labels": ["PER"]}}]}]}]

The text is `data.text`; the rest of `data` is metadata, `data.id` or else the task's `id` is the
id. The first annotation that is not cancelled is read; if there is none, the first of
`predictions`, with its scores. Results of other types than "labels" are ignored, but labelled spans
of other media are an error; a result with several labels gives one entity per label. `value.text`
must be equal to the text at the offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spandet.errors import FormatError
from spandet.formats.annotation_tools import as_fields, further_fields, one_span, read_id
from spandet.formats.json_list import read_json_list, write_json_list
from spandet.formats.records import (
    Record,
    checked_object,
    field,
    objects,
    read_score,
    shown,
    span_field,
    strings,
)
from spandet.formats.source import Parsed, Source
from spandet.formats.target import Target
from spandet.formats.unread import check_fields
from spandet.text import CharSpan, Document, Entity

_OWN = ("id", "text")
_SPAN = "labels"


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from Label Studio's JSON."""
    for line, task in read_json_list(source):
        yield source.attempt(line, _document, task)


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents as tasks with annotations or, if an entity has a score, with predictions."""
    with target.text() as out:
        write_json_list((_task(document) for document in documents), out)


def _document(task: Any) -> Document:
    task = checked_object(task, "the task")
    check_fields(task, ("data", "annotations", "predictions"))
    data = checked_object(task.get("data"), "data")
    text = field(data, "text", str)
    chosen, name = _chosen(task)
    entities: list[Entity[CharSpan]] = []
    for number, result in objects(chosen, "result"):
        try:
            if _is_span(result):
                entities.extend(_entities(result, text, chosen))
        except FormatError as error:
            raise error.inside(f"{name} result {number}") from None
    id_ = read_id(data) if data.get("id") is not None else read_id(task)
    return Document(text, tuple(entities), id_, further_fields(data, _OWN))


def _chosen(task: Record) -> tuple[Record, str]:
    """The annotation or prediction to read, and its name for messages."""
    for number, annotation in objects(task, "annotations"):
        if not annotation.get("was_cancelled"):
            return annotation, f"annotation {number}"
    for number, prediction in objects(task, "predictions"):
        return prediction, f"prediction {number}"
    return {}, ""


def _is_span(result: Record) -> bool:
    """Whether a result is a labelled span of text; choices, relations and others are ignored."""
    kind = result.get("type")
    if isinstance(kind, str) and kind.endswith("labels") and kind != _SPAN:
        raise FormatError(f"the type is {shown(kind)}, whose spans are not read, only {_SPAN}")
    return kind == _SPAN


def _entities(result: Record, text: str, chosen: Record) -> Iterator[Entity[CharSpan]]:
    value = checked_object(result.get("value"), "value")
    span = span_field(value, CharSpan, len(text))
    _check_text(value.get("text"), text[span.start : span.end], span)
    score = read_score(result)
    labels = strings(value, "labels", required=True)
    if not labels:
        raise FormatError("labels is empty, expected a label")
    for label in labels:
        yield Entity(span, label, read_score(chosen) if score is None else score)


def _check_text(expected: Any, found: str, span: CharSpan) -> None:
    if isinstance(expected, str) and _plain(expected) != _plain(found):
        raise FormatError(
            f"characters {span.start}:{span.end} are {shown(found)}, but its text is "
            f"{shown(expected)}; offsets must count Unicode characters"
        )


def _plain(text: str) -> list[str]:
    return text.replace("\\n", " ").split()  # Label Studio writes line feeds as a backslash and n


def _task(document: Document) -> dict[str, Any]:
    data = {} if document.id is None else {"id": document.id}  # tasks are renumbered, data is kept
    data |= {"text": document.text} | as_fields(document.metadata, _OWN)
    results = [_result(number, entity, document) for number, entity in enumerate(document.entities)]
    if any(entity.score is not None for entity in document.entities):
        return {"data": data, "predictions": [{"model_version": "spandet", "result": results}]}
    return {"data": data, "annotations": [{"result": results}]}


def _result(number: int, entity: Entity[CharSpan], document: Document) -> dict[str, Any]:
    span = one_span(entity)
    text = document.text[span.start : span.end]
    value = {"start": span.start, "end": span.end, "text": text, "labels": [entity.label]}
    names = {"id": str(number), "from_name": "label", "to_name": "text", "type": "labels"}
    return names | {"value": value} | ({} if entity.score is None else {"score": entity.score})
