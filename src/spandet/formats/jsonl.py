"""Native JSONL: one document per line, every offset in characters, half-open.

    {"id": "a1", "text": "IL-2 gene", "entities": [{"start": 0, "end": 9, "label": "DNA"}]}

Optional: `score` and `fragments` ([[start, end], …]) of an entity, `metadata`, and `sentences`
with the words of the corpus ({"words": [[start, end], …], "tags", "before", "after", "metadata"});
without them the text is split when its sentences are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import add
from typing import Any

from spandet.errors import FormatError
from spandet.formats.records import (
    Record,
    check_words,
    checked_span,
    field,
    items,
    read_json_lines,
    read_score,
    shown,
    span_field,
    strings,
    write_json_lines,
)
from spandet.formats.source import Parsed, Source
from spandet.formats.target import Target
from spandet.formats.unread import check_fields
from spandet.text import CharSpan, Document, Entity, Sentence
from spandet.text.dicts import entity_to_dict

_OWN = {"id", "text", "entities", "sentences", "metadata"}


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from native JSONL."""
    return read_json_lines(source, document_of)


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents as native JSONL, which represents every document completely."""
    with target.text() as out:
        write_json_lines(documents, out, record_of)


def document_of(record: Record) -> Document:
    """Convert a native record to a document."""
    if not record.keys() <= _OWN:
        check_fields(record, _OWN)
    text = field(record, "text", str)
    entities = items(record, "entities", "entity", lambda item: _entity(item, len(text)))
    own = None
    if record.get("sentences") is not None:
        own = tuple(items(record, "sentences", "sentence", lambda item: _sentence(item, text)))
        check_words(own)
    id_ = field(record, "id", str, None)
    return Document(text, tuple(entities), id_, field(record, "metadata", dict, {}), own)


def record_of(document: Document) -> dict[str, Any]:
    """Convert a document to a native record; empty fields are left out.

    Raises:
        FormatError: its own words overlap or are not in order, so the record could not be read.
    """
    record: dict[str, Any] = {} if document.id is None else {"id": document.id}
    record["text"] = document.text
    record["entities"] = [entity_to_dict(entity) for entity in document.entities]
    if document.own_sentences is not None:
        check_words(document.own_sentences)
        record["sentences"] = [_sentence_record(sentence) for sentence in document.own_sentences]
    if document.metadata:
        record["metadata"] = dict(document.metadata)
    return record


def _entity(item: Record, length: int) -> Entity[CharSpan]:
    label = field(item, "label", str)
    score = read_score(item)
    span = span_field(item, CharSpan, length)
    pairs = field(item, "fragments", list, ())
    if not pairs:
        return Entity(span, label, score)
    fragments = [checked_span(CharSpan, *_pair(pair, "fragments"), length) for pair in pairs]
    for number, (left, right) in enumerate(pairwise(fragments), start=1):
        if right.start <= left.end:
            found = f"fragment {number} starts at {right.start}"
            raise FormatError(f"{found}, expected after the end {left.end} of the one before")
    entity = Entity.from_fragments(fragments, label, score)
    if entity.span != span:
        raise FormatError(
            f"the fragments cover {entity.span.start}:{entity.span.end}, "
            f"but start and end are {span.start}:{span.end}"
        )
    return entity


def _pair(value: Any, name: str) -> tuple[int, int]:
    match value:
        case [int() as start, int() as end] if type(start) is type(end) is int:
            return start, end
    raise FormatError(f"{name} contains {shown(value)}, expected [start, end]")


def _sentence(item: Record, text: str) -> Sentence:
    pairs = field(item, "words", list)
    tags = strings(item, "tags")
    if tags and len(tags) != len(pairs):
        raise FormatError(f"{len(tags)} tags for {len(pairs)} words, expected one per word")
    starts, words = _words(pairs, text)
    return Sentence(
        words,
        starts,
        tags,
        strings(item, "before"),
        strings(item, "after"),
        field(item, "metadata", dict, {}),
    )


def _words(pairs: list[Any], text: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Starts and texts of words. All are checked at once; only if that fails, one by one."""
    if set(map(type, pairs)) <= {list} and set(map(len, pairs)) <= {2}:
        starts, ends = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if set(map(type, starts + ends)) <= {int} and min(starts, default=0) >= 0:
            words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
            if "" not in words and list(map(add, starts, map(len, words))) == ends:
                return tuple(starts), tuple(words)
    for pair in pairs:
        checked_span(CharSpan, *_pair(pair, "words"), len(text))
    raise AssertionError("one of these words is bad")


def _sentence_record(sentence: Sentence) -> dict[str, Any]:
    words = zip(sentence.starts, sentence.words, strict=True)
    record: dict[str, Any] = {"words": [[start, start + len(word)] for start, word in words]}
    for name in ("tags", "before", "after"):
        if values := getattr(sentence, name):
            record[name] = list(values)
    if sentence.metadata:
        record["metadata"] = dict(sentence.metadata)
    return record
