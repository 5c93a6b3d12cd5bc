"""Records of JSON formats: parsing, and checks whose messages name the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO, TypeVar

from spandet.errors import FormatError
from spandet.formats.source import Parsed, Source
from spandet.text import CharSpan, Document, Sentence, WordSpan
from spandet.text.sentence import misplaced_word

T = TypeVar("T")
SpanT = TypeVar("SpanT", CharSpan, WordSpan)
Record = Mapping[str, Any]

_NAMES = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}
_UNITS = {WordSpan: "words", CharSpan: "characters"}
_MISSING = object()
_ONLY_STRINGS = {str}


def parse_json(text: str) -> Any:
    """A JSON value; whatever is wrong with it is a FormatError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise FormatError("JSON nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"not JSON ({error})") from None


def dump_json(value: Any) -> str:
    """One line of JSON, readable in every script; lone surrogates are escaped."""
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return line


def read_json_lines(source: Source, parse: Callable[[Record], Document]) -> Iterator[Parsed]:
    """One document per line; empty lines are passed over."""
    for number, line in source.lines():
        if isinstance(line, FormatError):
            yield line
        elif line.strip():
            yield source.attempt(number, lambda text: parse(an_object(parse_json(text))), line)


def write_json_lines(
    documents: Iterable[Document], out: TextIO, row: Callable[[Document], Any]
) -> None:
    """One line per document."""
    out.writelines(dump_json(row(document)) + "\n" for document in documents)


def an_object(value: Any, name: str = "the record") -> Record:
    """The value, if it is a JSON object."""
    if not isinstance(value, dict):
        raise FormatError(f"{name} is {shown(value)}, expected an object")
    return value


def field(record: Record, name: str, kind: type[T], default: Any = _MISSING) -> T:
    """A field of the given kind; `default` where it is missing or null."""
    value = record.get(name)
    if value is None:
        if default is not _MISSING:
            return default  # type: ignore[no-any-return]
        raise FormatError(f"{name} is missing, expected {_NAMES[kind]}")
    if not isinstance(value, kind) or isinstance(value, bool):  # True is an int, for Python
        raise FormatError(f"{name} is {shown(value)}, expected {_NAMES[kind]}")
    return value


def objects(record: Record, name: str) -> Iterator[tuple[int, Record]]:
    """The numbered objects of a list field; none where it is missing."""
    for number, item in enumerate(field(record, name, list, ())):
        yield number, an_object(item, f"{name}[{number}]")


def items(record: Record, name: str, part: str, parse: Callable[[Record], T]) -> list[T]:
    """What `parse` makes of each object of a list field; an error says of which ("entity 3")."""
    made = []
    for number, item in objects(record, name):
        try:
            made.append(parse(item))
        except FormatError as error:
            raise error.inside(f"{part} {number}") from None
    return made


def strings(record: Record, name: str, *, required: bool = False) -> tuple[str, ...]:
    """A list of strings; empty where it is missing and not required."""
    values = field(record, name, list) if required else field(record, name, list, ())
    if not set(map(type, values)) <= _ONLY_STRINGS:
        number = next(n for n, value in enumerate(values) if not isinstance(value, str))
        raise FormatError(f"{name}[{number}] is {shown(values[number])}, expected a string")
    return tuple(values)


def read_score(record: Record) -> float | None:
    """The optional `score` of an entity."""
    score = record.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise FormatError(f"score is {shown(score)}, expected a number from 0 to 1")
    return float(score)


def a_span(kind: type[SpanT], start: int, end: int, length: int) -> SpanT:
    """A checked span of a text or sentence with `length` units. Nothing is ever guessed."""
    if not start < end:
        hint = "; is the end inclusive? it must be exclusive" if end in (start, start - 1) else ""
        raise FormatError(f"start {start} is not before end {end}{hint}")
    if start < 0 or end > length:
        unit = _UNITS[kind]
        raise FormatError(f"{start}:{end} is outside the {length} {unit} of the text")
    return kind(start, end)


def span_field(record: Record, kind: type[SpanT], length: int) -> SpanT:
    """The span that `start` and `end` of a record name."""
    return a_span(kind, field(record, "start", int), field(record, "end", int), length)


def check_words(sentences: Iterable[Sentence]) -> None:
    """Refuse words that overlap or are not in the order of the text."""
    if fault := misplaced_word(sentences):
        raise FormatError(fault)


def shown(value: Any, most: int = 40) -> str:
    """A value as messages show it."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"
