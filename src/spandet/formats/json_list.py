"""Streaming of a JSON list: only one item is held in memory, not the file."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TextIO

from spandet.errors import FormatError
from spandet.formats.records import DECODER, dump_json
from spandet.formats.source import MOST_BYTES, Source, too_long

_CHUNK_BYTES = 1 << 16
_SPACE = " \t\r\n"


def read_json_list(source: Source) -> Iterator[tuple[int, Any]]:
    """Read the items of a list, each with the number of its first line.

    Raises:
        FormatError: the JSON is invalid; nothing after that can be read.
    """
    with source.binary() as stream:
        window = _Window(source, stream)
        window.expect("[")
        if window.peek() == "]":
            return
        while True:
            window.peek()
            line = window.line
            try:
                value = window.value()
            except FormatError as error:
                raise error.at(f"{source.name}:{line}") from None
            yield line, value
            if window.peek() == "]":
                return
            window.expect(",")


def write_json_list(items: Iterable[Any], out: TextIO) -> None:
    """Write a JSON list with one item per line."""
    opening = "[\n"
    for item in items:
        out.write(opening + dump_json(item))
        opening = ",\n"
    out.write("[]\n" if opening == "[\n" else "\n]\n")


class _Window:
    """The part of a stream that is being parsed."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        self.line = 1
        self._source = source
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not white space, without consuming it; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._step_to(self._at + 1)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read(_CHUNK_BYTES)

    def expect(self, character: str) -> None:
        """Consume a character that must be next."""
        found = self.peek()
        if found != character:
            shown = repr(found) if found else "the end of the file"
            raise self._error(f"found {shown}, expected {character!r}")
        self._step_to(self._at + 1)

    def value(self) -> Any:
        """Consume the next JSON value; reads chunks of growing size until it is complete."""
        size = _CHUNK_BYTES
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._error("JSON nested too deeply") from None
            except ValueError as error:
                if self._ended:
                    raise self._error(f"not JSON ({error})") from None
            else:
                if end < len(self._text) or self._ended:  # else a number may be incomplete
                    self._step_to(end)
                    return value
            if len(self._text) - self._at > MOST_BYTES:
                raise too_long("JSON value").at(f"{self._source.name}:{self.line}")
            self._read(size)
            size = min(2 * size, MOST_BYTES)

    def _read(self, size: int) -> None:
        data = self._stream.read(size)
        self._ended = not data
        try:
            fresh = self._decode(data, self._ended)
        except UnicodeDecodeError as error:
            raise self._error(f"not UTF-8 ({error.reason})") from error
        self._text, self._at = self._text[self._at :] + fresh, 0

    def _step_to(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _error(self, what: str) -> FormatError:
        return FormatError(what, f"{self._source.name}:{self.line}")
