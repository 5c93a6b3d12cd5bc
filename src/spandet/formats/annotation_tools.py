"""Functions shared by the JSON formats of annotation tools: ids, metadata, contiguous entities."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from spandet.errors import FormatError
from spandet.formats.records import Record, shown
from spandet.formats.unread import check_fields
from spandet.text import CharSpan, Document, Entity

_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def read_id(record: Record) -> str | None:
    """Read the optional `id`, a string or a whole number."""
    value = record.get("id")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise FormatError(f"id is {shown(value)}, expected a string or a whole number")
    return str(value)


def id_field(document: Document) -> dict[str, Any]:
    """The `id` field of a record: a number if the id looks like one."""
    if document.id is None:
        return {}
    return {"id": int(document.id) if _PLAIN_NUMBER.fullmatch(document.id) else document.id}


def further_fields(record: Record, own: Collection[str]) -> dict[str, Any]:
    """The fields that the format does not define; they become the document's metadata.

    Raises:
        FormatError: one of them contains entities.
    """
    check_fields(record, own)
    return {name: value for name, value in record.items() if name not in own}


def as_fields(metadata: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Metadata as fields of a record, next to the fields that the format defines.

    Raises:
        FormatError: a name is that of a field of the format, or a value would be read as entities.
    """
    check_fields(metadata, own)
    for name in metadata:
        if name in own:
            raise FormatError(f"the metadata {shown(name)} has the name of a field of this format")
    return dict(metadata)


def one_span(entity: Entity[CharSpan]) -> CharSpan:
    """The span of a contiguous entity.

    Raises:
        FormatError: the entity is discontinuous.
    """
    if entity.fragments:
        raise FormatError(
            f"the {entity.label} entity at characters {entity.span.start}:{entity.span.end} "
            f"is discontinuous, which this format cannot hold"
        )
    return entity.span
