"""Records of JSON formats: parsing, and checks whose messages name the field."""

from __future__ import annotations

import json
import math
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


def _no_number(name: str) -> None:
    raise FormatError(f"not JSON ({name} is no number there)")


DECODER = json.JSONDecoder(parse_constant=_no_number)
"""Python's own would take NaN and Infinity for numbers."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_ASCII_ENCODER = json.JSONEncoder(allow_nan=False)


def parse_json(text: str) -> Any:
    """A JSON value; whatever is wrong with it is a FormatError."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise FormatError("JSON nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"not JSON ({error})") from None


def dump_json(value: Any) -> str:
    """One line of JSON, readable in every script; lone surrogates are escaped.

    Raises:
        FormatError: JSON cannot hold the value, or something in it: NaN, a date.
    """
    try:
        line = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(_unwritable(value) or f"JSON cannot hold it ({error})") from None
    try:
        line.encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value)
    return line


def report_json(value: Any) -> str:
    """A report as JSON with indents; a number that is not finite is null, as JSON has none."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unwritable(value: Any, name: str = "", depth: int = 9) -> str | None:
    """Where something stands that JSON cannot hold, as far as one looks."""
    if isinstance(value, dict | list | tuple) and depth:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        places = (_unwritable(part, f"{name}.{key}", depth - 1) for key, part in parts)
        return next(filter(None, places), None)
    is_plain = value is None or isinstance(value, dict | list | tuple | str | int | float)
    if is_plain and not (isinstance(value, float) and not math.isfinite(value)):
        return None
    return f"{name.lstrip('.')} is {value!r}, which JSON cannot hold"


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
