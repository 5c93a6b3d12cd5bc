"""Prodigy's JSONL: one text per line, offsets in characters, half-open.

    {"text": "Zoe ran", "tokens": [{"text": "Zoe", "start": 0, "end": 3, "id": 0, "ws": true},
     {"text": "ran", "start": 4, "end": 7, "id": 1, "ws": false}],
     "spans": [{"start": 0, "end": 3, "label": "PER", "token_start": 0, "token_end": 0}]}

`token_end` is the last token, inclusive; token numbers are written if a span matches words, and
are ignored in reading. `tokens` become the document's own words, in one sentence, without white
space tokens. Every other field is metadata of the document, such as `meta` and `answer`: rejected
and ignored texts are read too; filter them by metadata["answer"] if needed.
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
    check_words,
    field,
    items,
    objects,
    read_json_lines,
    read_score,
    shown,
    span_field,
    write_json_lines,
)
from spandet.formats.source import Parsed, Source
from spandet.formats.target import Target
from spandet.text import CharSpan, Document, Entity, Sentence

_OWN = ("id", "text", "tokens", "spans")


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from Prodigy's JSONL."""
    return read_json_lines(source, _document)


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents as Prodigy's JSONL, which has no fields for sentences and tags."""
    with target.text() as out:
        write_json_lines(documents, out, _record)


def _document(record: Record) -> Document:
    text = field(record, "text", str)

    def entity(item: Record) -> Entity[CharSpan]:
        span = span_field(item, CharSpan, len(text))
        return Entity(span, field(item, "label", str), read_score(item))

    entities = items(record, "spans", "span", entity)
    own = None if record.get("tokens") is None else (_sentence(record, text),)
    metadata = further_fields(record, _OWN)
    return Document(text, tuple(entities), read_id(record), metadata, own)


def _sentence(record: Record, text: str) -> Sentence:
    words: list[str] = []
    starts: list[int] = []
    behind, length = 0, len(text)
    for number, token in objects(record, "tokens"):
        start, end, word = token.get("start"), token.get("end"), token.get("text")
        if (
            type(start) is not int
            or type(end) is not int
            or not behind <= start < end <= length
            or text[start:end] != word
        ):
            raise _token_error(token, text, behind).inside(f"token {number}")
        behind = end
        if not word.isspace():
            words.append(word)
            starts.append(start)
    return Sentence(tuple(words), tuple(starts))


def _token_error(token: Record, text: str, behind: int) -> FormatError:
    """Make the error for a bad token; slow, so only called when one was found."""
    try:
        span = span_field(token, CharSpan, len(text))
        expected, found = field(token, "text", str), text[span.start : span.end]
    except FormatError as error:
        return error
    if expected != found:
        where = f"characters {span.start}:{span.end}"
        return FormatError(f"{where} are {shown(found)}, but its text is {shown(expected)}")
    return FormatError(f"it starts at {span.start}, before the end {behind} of the one before")


def _record(document: Document) -> dict[str, Any]:
    record = id_field(document) | {"text": document.text}
    spans = [_span_record(entity) for entity in document.entities]
    if document.own_sentences is not None:
        check_words(document.own_sentences)
        tokens = _tokens(document.own_sentences, document.text)
        _add_token_numbers(spans, tokens)
        record["tokens"] = tokens
    return record | {"spans": spans} | as_fields(document.metadata, _OWN)


def _span_record(entity: Entity[CharSpan]) -> dict[str, Any]:
    span = one_span(entity)
    record: dict[str, Any] = {"start": span.start, "end": span.end, "label": entity.label}
    return record if entity.score is None else record | {"score": entity.score}


def _tokens(sentences: tuple[Sentence, ...], text: str) -> list[dict[str, Any]]:
    places = (
        (word, start)
        for sentence in sentences
        for word, start in zip(sentence.words, sentence.starts, strict=True)
    )
    return [
        {
            "text": word,
            "start": start,
            "end": start + len(word),
            "id": number,
            "ws": text[start + len(word) : start + len(word) + 1] == " ",
        }
        for number, (word, start) in enumerate(places)
    ]


def _add_token_numbers(spans: list[dict[str, Any]], tokens: list[dict[str, Any]]) -> None:
    first = {token["start"]: token["id"] for token in tokens}
    last = {token["end"]: token["id"] for token in tokens}
    for span in spans:
        if span["start"] in first and span["end"] in last:
            span["token_start"] = first[span["start"]]
            span["token_end"] = last[span["end"]]
