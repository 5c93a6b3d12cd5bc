"""Parsing, checking and writing of JSON records; errors name the field."""

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


def _refuse_constant(name: str) -> None:
    raise FormatError(f"not JSON ({name} is not a JSON number)")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""A decoder that refuses NaN and Infinity, which Python's default decoder accepts."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_ASCII_ENCODER = json.JSONEncoder(allow_nan=False)


def parse_json(text: str) -> Any:
    """Parse a JSON value; raises FormatError if it is invalid."""
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise FormatError("JSON nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"not JSON ({error})") from None


def dump_json(value: Any) -> str:
    """Write a value as one line of JSON without ASCII escapes; lone surrogates are escaped.

    Raises:
        FormatError: JSON cannot represent the value or a part of it: NaN, a date.
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
    """Write a report as indented JSON; numbers that are not finite become null."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unwritable(value: Any, name: str = "", depth: int = 9) -> str | None:
    """Describe the first value that JSON cannot represent, down to a depth."""
    if isinstance(value, dict | list | tuple) and depth:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        places = (_unwritable(part, f"{name}.{key}", depth - 1) for key, part in parts)
        return next(filter(None, places), None)
    is_plain = value is None or isinstance(value, dict | list | tuple | str | int | float)
    if is_plain and not (isinstance(value, float) and not math.isfinite(value)):
        return None
    return f"{name.lstrip('.')} is {value!r}, which JSON cannot hold"


def read_json_lines(source: Source, parse: Callable[[Record], Document]) -> Iterator[Parsed]:
    """Read one document per line; empty lines are skipped."""
    for number, line in source.lines():
        if isinstance(line, FormatError):
            yield line
        elif line.strip():
            yield source.attempt(number, lambda text: parse(checked_object(parse_json(text))), line)


def write_json_lines(
    documents: Iterable[Document], out: TextIO, row: Callable[[Document], Any]
) -> None:
    """Write one line per document."""
    out.writelines(dump_json(row(document)) + "\n" for document in documents)


def checked_object(value: Any, name: str = "the record") -> Record:
    """Check that a value is a JSON object."""
    if not isinstance(value, dict):
        raise FormatError(f"{name} is {shown(value)}, expected an object")
    return value


def field(record: Record, name: str, kind: type[T], default: Any = _MISSING) -> T:
    """The value of a field of the given type; `default` if it is missing or null."""
    value = record.get(name)
    if value is None:
        if default is not _MISSING:
            return default  # type: ignore[no-any-return]
        raise FormatError(f"{name} is missing, expected {_NAMES[kind]}")
    if not isinstance(value, kind) or isinstance(value, bool):  # in Python, True is an int
        raise FormatError(f"{name} is {shown(value)}, expected {_NAMES[kind]}")
    return value


def objects(record: Record, name: str) -> Iterator[tuple[int, Record]]:
    """The numbered objects of a list field; none if it is missing."""
    for number, item in enumerate(field(record, name, list, ())):
        yield number, checked_object(item, f"{name}[{number}]")


def items(record: Record, name: str, part: str, parse: Callable[[Record], T]) -> list[T]:
    """Parse each object of a list field; errors name the object ("entity 3")."""
    made = []
    for number, item in objects(record, name):
        try:
            made.append(parse(item))
        except FormatError as error:
            raise error.inside(f"{part} {number}") from None
    return made


def strings(record: Record, name: str, *, required: bool = False) -> tuple[str, ...]:
    """The value of a field with a list of strings; empty if it is missing and not required."""
    values = field(record, name, list) if required else field(record, name, list, ())
    if not set(map(type, values)) <= _ONLY_STRINGS:
        number = next(n for n, value in enumerate(values) if not isinstance(value, str))
        raise FormatError(f"{name}[{number}] is {shown(values[number])}, expected a string")
    return tuple(values)


def read_score(record: Record) -> float | None:
    """Read the optional `score` of an entity."""
    score = record.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise FormatError(f"score is {shown(score)}, expected a number from 0 to 1")
    return float(score)


def checked_span(kind: type[SpanT], start: int, end: int, length: int) -> SpanT:
    """Build a span and check that it lies in a text or sentence of `length` units."""
    if not start < end:
        hint = "; is the end inclusive? it must be exclusive" if end in (start, start - 1) else ""
        raise FormatError(f"start {start} is not before end {end}{hint}")
    if start < 0 or end > length:
        unit = _UNITS[kind]
        raise FormatError(f"{start}:{end} is outside the {length} {unit} of the text")
    return kind(start, end)


def span_field(record: Record, kind: type[SpanT], length: int) -> SpanT:
    """Read a span from the fields `start` and `end`."""
    return checked_span(kind, field(record, "start", int), field(record, "end", int), length)


def check_words(sentences: Iterable[Sentence]) -> None:
    """Refuse words that overlap or are not in the order of the text."""
    if problem := misplaced_word(sentences):
        raise FormatError(problem)


def shown(value: Any, most: int = 40) -> str:
    """Format a value for an error message, shortened to `most` characters."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"
