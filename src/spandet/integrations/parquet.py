"""Documents in Parquet files, one per row; needs the extra "ray".

Input files need a column `text`; `id` may be a string or an integer. Output files have the columns

    id, text, entities: list<struct<start, end, label, score, text, fragments>>,
    metadata_json, sentences_json     as in native JSONL; null if empty

Offsets are half-open and counted in characters. `fragments` has at least one [start, end].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from spandet.errors import FormatError
from spandet.formats.jsonl import document_of, record_of
from spandet.formats.records import dump_json, parse_json, shown
from spandet.formats.source import MOST_BYTES, Parsed, too_long
from spandet.text import Document, to_records

_ENTITY = pa.struct(
    [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("label", pa.string()),
        ("score", pa.float64()),
        ("text", pa.string()),
        ("fragments", pa.list_(pa.list_(pa.int64()))),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("entities", pa.list_(_ENTITY)),
        ("metadata_json", pa.string()),
        ("sentences_json", pa.string()),
    ]
)
_READ = ("id", "text", "metadata_json", "sentences_json")
_ROWS = 256


def row_groups(stream: BinaryIO, name: str) -> int:
    """Number of row groups of a file.

    Raises:
        FormatError: The file is not Parquet, or has no column `text`.
    """
    try:
        file = parquet.ParquetFile(stream)
    except pa.ArrowInvalid as error:
        raise FormatError(f"not a Parquet file ({error})", name) from None
    columns = file.schema_arrow.names
    if "text" not in columns:
        raise FormatError(f"columns are {', '.join(columns)}, expected one called text", name)
    return int(file.num_row_groups)


def read(stream: BinaryIO, name: str, *, group: int) -> Iterator[Parsed]:
    """Read the documents of one row group, without entities."""
    names = parquet.ParquetFile(stream).schema_arrow.names
    columns = [column for column in _READ if column in names]
    # Dictionary encoding is kept: a small file can contain the same long text very often.
    texts = [column for column in columns if column != "id"]
    file = parquet.ParquetFile(stream, read_dictionary=texts)
    _check_size(file.metadata.row_group(group), columns, f"{name}: group {group}")
    number = 0
    for batch in file.iter_batches(_ROWS, row_groups=[group], columns=columns):
        for place in range(batch.num_rows):
            try:
                yield _document({key: batch[key][place].as_py() for key in columns})
            except FormatError as error:
                yield error.at(f"{name}: row {number} of group {group}")
            number += 1


def write(documents: Iterable[Document], stream: BinaryIO) -> None:
    """Write documents to one file.

    Raises:
        FormatError: A text has a lone surrogate, which Parquet cannot store.
    """
    with parquet.ParquetWriter(stream, SCHEMA) as writer:
        rows: list[dict[str, Any]] = []
        for document in documents:
            rows.append(_row(document))
            if len(rows) == _ROWS:
                writer.write_batch(_batch(rows))
                rows = []
        writer.write_batch(_batch(rows))


def _check_size(group: Any, columns: Collection[str], place: str) -> None:
    """Raise an error if rows are too long on average; Parquet itself limits a value to 2 GiB."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in columns)
    if size > MOST_BYTES * max(1, group.num_rows):
        raise too_long("row").at(place)


def _document(row: dict[str, Any]) -> Document:
    record = {"text": row["text"]}
    match row.get("id"):
        case None:
            pass
        case str() | int() as known:
            record["id"] = str(known)
        case other:
            raise FormatError(f"id is {shown(other)}, expected a string or an integer")
    for name in ("metadata", "sentences"):
        if (json := row.get(f"{name}_json")) is not None:
            record[name] = parse_json(json)
    return document_of(record)


def _row(document: Document) -> dict[str, Any]:
    record = record_of(document)
    entities = to_records([document])
    names = [field.name for field in _ENTITY]
    return {
        "id": document.id,
        "text": document.text,
        "entities": [{name: entity[name] for name in names} for entity in entities],
        "metadata_json": dump_json(record["metadata"]) if "metadata" in record else None,
        "sentences_json": dump_json(record["sentences"]) if "sentences" in record else None,
    }


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    except UnicodeEncodeError as error:
        bad = ord(error.object[error.start])
        raise FormatError(
            f"character U+{bad:04X} is a lone surrogate, which Parquet cannot store"
        ) from None
