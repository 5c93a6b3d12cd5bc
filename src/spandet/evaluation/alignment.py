"""Pairs the documents of several streams by id or by order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NoReturn, TypeAlias, TypeGuard

from spandet.errors import MismatchError
from spandet.text import Document

Row: TypeAlias = tuple[Document, ...]
"""The same document from every stream, in the order of the streams."""


def aligned(streams: Mapping[str, Iterable[Document]]) -> Iterator[Row]:
    """Pair the documents of named streams: by id if every stream has ids, otherwise by order.

    Streams in the same order are read in constant memory; otherwise documents are kept in memory
    until their counterparts have been read.

    Raises:
        MismatchError: a document is missing in a stream or occurs twice, or only some documents
            have ids.
    """
    names = tuple(streams)
    has_ids: tuple[bool, ...] | None = None
    waiting: dict[str, dict[str, Document]] = {}
    for number, row in enumerate(zip_longest(*streams.values()), 1):
        if has_ids is None:
            has_ids = tuple(document is None or document.id is not None for document in row)
        if all(has_ids) and not waiting and _is_complete(row):
            yield row
            continue
        _check_ids(number, names, row, has_ids)
        if all(has_ids):
            yield from _completed_rows(names, row, waiting)
        else:
            yield _row_by_order(number, names, row)
    if waiting:
        _refuse_unpaired(names, waiting)


def _is_complete(row: tuple[Document | None, ...]) -> TypeGuard[Row]:
    """Whether every stream has a document here, all with the same id."""
    first = row[0]
    if first is None or first.id is None:
        return False
    return all(document is not None and document.id == first.id for document in row)


def _check_ids(
    number: int, names: tuple[str, ...], row: tuple[Document | None, ...], has_ids: tuple[bool, ...]
) -> None:
    for name, document, expected in zip(names, row, has_ids, strict=True):
        if document is not None and (document.id is not None) is not expected:
            found = "no id" if expected else f"the id {document.id!r}"
            before = "an id" if expected else "none"
            raise MismatchError(
                f"{name}: document {number} has {found}, but the documents before have {before}; "
                f"expected an id on all documents or on none"
            )


def _completed_rows(
    names: tuple[str, ...],
    row: tuple[Document | None, ...],
    waiting: dict[str, dict[str, Document]],
) -> Iterator[Row]:
    """The rows that these documents complete; incomplete rows are kept in `waiting`."""
    for name, document in zip(names, row, strict=True):
        if document is None or document.id is None:
            continue
        found = waiting.setdefault(document.id, {})
        if name in found:
            raise MismatchError(
                f"{name}: the id {document.id!r} occurs twice before its "
                f"counterpart; expected every id once, or the same order in all files"
            )
        found[name] = document
        if len(found) == len(names):
            del waiting[document.id]
            yield tuple(found[each] for each in names)


def _row_by_order(number: int, names: tuple[str, ...], row: tuple[Document | None, ...]) -> Row:
    documents = tuple(document for document in row if document is not None)
    if len(documents) < len(row):
        has = next(name for name, document in zip(names, row, strict=True) if document is not None)
        lacks = next(name for name, document in zip(names, row, strict=True) if document is None)
        which = number if documents[0].id is None else f"{number} ({documents[0].id!r})"
        raise MismatchError(
            f"document {which} is in {has} but not in {lacks}, which ends after {number - 1} "
            f"documents (paired by order, because not all files have ids)"
        )
    return documents


def _refuse_unpaired(names: tuple[str, ...], waiting: dict[str, dict[str, Document]]) -> NoReturn:
    name, found = next(iter(waiting.items()))
    lacks = next(each for each in names if each not in found)
    more = f" (and {len(waiting) - 1} more without a counterpart)" if len(waiting) > 1 else ""
    raise MismatchError(
        f"document {name!r} is in {' and '.join(sorted(found))} but not in {lacks}{more}"
    )
