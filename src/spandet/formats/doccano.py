"""Doccano's JSONL of sequence labelling: one text per line, offsets in characters, half-open.

    {"id": 7, "text": "Zoe met Ole", "label": [[0, 3, "PER"], [8, 11, "PER"]]}

Older exports have `labels`; those with relations have `entities` instead ({"id", "label",
"start_offset", "end_offset"}, also half-open). Every other field is metadata of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spandet.errors import FormatError
from spandet.formats.annotation_tools import (
    as_fields,
    further_fields,
    id_field,
    one_span,
    read_id,
)
from spandet.formats.records import (
    Record,
    checked_object,
    checked_span,
    field,
    read_json_lines,
    shown,
    write_json_lines,
)
from spandet.formats.source import Parsed, Source
from spandet.formats.target import Target
from spandet.text import CharSpan, Document, Entity

_LISTS = ("label", "labels", "entities")
_OWN = ("id", "text", *_LISTS)


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from a doccano export."""
    return read_json_lines(source, _document)


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents as doccano's JSONL, which has no fields for scores and words."""
    with target.text() as out:
        write_json_lines(documents, out, _record)


def _document(record: Record) -> Document:
    text = field(record, "text", str)
    given = [name for name in _LISTS if record.get(name) is not None]
    if len(given) > 1:
        raise FormatError(f"{' and '.join(given)} are both given, expected one of them")
    parse = _from_object if given == ["entities"] else _from_list
    entities = []
    for number, item in enumerate(field(record, given[0], list) if given else ()):
        try:
            entities.append(parse(item, len(text)))
        except FormatError as error:
            raise error.inside(f"entity {number}") from None
    metadata = further_fields(record, _OWN)
    return Document(text, tuple(entities), read_id(record), metadata)


def _from_list(item: Any, length: int) -> Entity[CharSpan]:
    match item:
        case [int() as start, int() as end, str() as label] if type(start) is type(end) is int:
            return Entity(checked_span(CharSpan, start, end, length), label)
    raise FormatError(f"found {shown(item)}, expected [start, end, label]")


def _from_object(item: Any, length: int) -> Entity[CharSpan]:
    record = checked_object(item, "it")
    start, end = field(record, "start_offset", int), field(record, "end_offset", int)
    return Entity(checked_span(CharSpan, start, end, length), field(record, "label", str))


def _record(document: Document) -> dict[str, Any]:
    record = id_field(document) | {"text": document.text}
    spans = [(one_span(entity), entity.label) for entity in document.entities]
    record["label"] = [[span.start, span.end, label] for span, label in spans]
    return record | as_fields(document.metadata, _OWN)
