"""Tokens-JSONL and tokens-JSON: one sentence per record, entities counted in words, half-open.

    {"tokens": ["IL-2", "gene"], "entities": [{"start": 0, "end": 2, "type": "DNA"}]}

Optional: `pos` (one tag per token), `doc_id` (consecutive records with the same `doc_id` are one
document), `ltokens` and `rtokens` (context that is not part of the record); every other field is
metadata of the sentence. Tokens-JSON is the same in one JSON list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spandet.errors import FormatError
from spandet.formats.annotation_tools import as_fields
from spandet.formats.json_list import read_json_list, write_json_list
from spandet.formats.records import (
    Record,
    checked_object,
    dump_json,
    field,
    items,
    parse_json,
    read_score,
    span_field,
    strings,
)
from spandet.formats.source import Parsed, Rows, Source
from spandet.formats.target import Target
from spandet.formats.unread import check_fields, check_tags
from spandet.text import Document, Entity, WordRow, WordSpan

_OWN = {"tokens", "entities", "pos", "doc_id", "ltokens", "rtokens"}
_IDS = ("sent_id", "orig_id", "org_id", "id")
"""Fields with the id of a record that has no `doc_id`."""


def read_lines(source: Source) -> Iterator[Parsed]:
    """Read documents from tokens-JSONL."""
    return _read(source, _parsed_lines(source))


def read_list(source: Source) -> Iterator[Parsed]:
    """Read documents from tokens-JSON."""
    return _read(source, read_json_list(source))


def write_lines(documents: Iterable[Document], target: Target) -> None:
    """Write documents as tokens-JSONL: one line per sentence."""
    with target.text() as out:
        out.writelines(dump_json(record) + "\n" for record in _records(documents))


def write_list(documents: Iterable[Document], target: Target) -> None:
    """Write documents as tokens-JSON: one list item per sentence."""
    with target.text() as out:
        write_json_list(_records(documents), out)


def _parsed_lines(source: Source) -> Iterator[tuple[int, object]]:
    for number, line in source.lines():
        if isinstance(line, FormatError):
            yield number, line
        elif line.strip():
            try:
                yield number, parse_json(line)
            except FormatError as error:
                yield number, error.at(f"{source.name}:{number}")


def _read(source: Source, values: Iterable[tuple[int, object]]) -> Iterator[Parsed]:
    rows = Rows(source)
    current: str | None = None
    for number, value in values:
        try:
            if isinstance(value, FormatError):
                raise value
            record = checked_object(value)
            row = _row(record)
            doc_id: str | None = field(record, "doc_id", str, None)
        except FormatError as error:
            yield error.at(f"{source.name}:{number}")
            continue
        if rows and doc_id != current:
            yield Document.from_rows(rows, id=current)
            rows = Rows(source)
        current = doc_id
        if doc_id is None:
            yield Document.from_rows([row], id=_own_id(row.metadata))
        else:
            rows.append(row)
    if rows:
        yield Document.from_rows(rows, id=current)


def _own_id(metadata: Mapping[str, Any]) -> str | None:
    return next((str(metadata[name]) for name in _IDS if name in metadata), None)


def _row(record: Record) -> WordRow:
    words = strings(record, "tokens", required=True)
    if "" in words:
        raise FormatError(f"tokens[{words.index('')}] is empty, expected a word")
    check_fields(record, _OWN)
    tags = strings(record, "pos")
    if tags and len(tags) != len(words):
        raise FormatError(f"pos has {len(tags)} tags for {len(words)} tokens, expected one each")
    check_tags(tags, words if tags else (), "pos")

    def entity(item: Record) -> Entity[WordSpan]:
        span = span_field(item, WordSpan, len(words))
        return Entity(span, field(item, "type", str), read_score(item))

    entities = items(record, "entities", "entity", entity)
    before, after = strings(record, "ltokens"), strings(record, "rtokens")
    metadata = {name: value for name, value in record.items() if name not in _OWN}
    return WordRow(words, entities, tags, before, after, metadata)


def _records(documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
    for document in documents:
        for row in document.rows():
            record: dict[str, Any] = {"tokens": row.words}
            record["entities"] = [_entity_record(entity) for entity in row.entities]
            optional = {"pos": row.tags, "ltokens": row.before, "rtokens": row.after}
            record |= {name: values for name, values in optional.items() if values}
            if document.id is not None and document.id != _own_id(row.metadata):
                record["doc_id"] = document.id
            yield record | as_fields(row.metadata, _OWN)


def _entity_record(entity: Entity[WordSpan]) -> dict[str, Any]:
    if entity.fragments:
        raise FormatError(
            f"the {entity.label} entity at words {entity.span.start}:"
            f"{entity.span.end} is discontinuous, which this format cannot hold"
        )
    record = {"start": entity.span.start, "end": entity.span.end, "type": entity.label}
    return record if entity.score is None else record | {"score": entity.score}
