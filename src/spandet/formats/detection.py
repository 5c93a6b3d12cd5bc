"""Detection of a file's format by its name and, where formats share a suffix, by its beginning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from spandet.errors import FormatError, UsageError
from spandet.formats.corpus import Format, files_of, has_suffix, names_in
from spandet.formats.source import STDIN, Source
from spandet.formats.target import STDOUT, Target

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)|[\[{]|[\]}]')
_TAG = re.compile(r"<([A-Za-z_][\w.-]*)")
_TAGGED_LINE = re.compile(r"\S.*[ \t](?:O|[BIESMLU]-\S+)[ \t\r]*")
_TAGGED_LINES = 3, 50
"""Minimum number of lines, all ending in a tag, for columns; maximum number of lines checked."""
_PLAIN = "text"
_BLANK = "\ufeff \t\r\n"


def first_keys(head: str) -> set[str]:
    """The keys of the first JSON object in a file's head, as far as the head reaches."""
    keys, depth = set(), 0
    for token in _TOKEN.finditer(head, max(head.find("{"), 0)):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth == 1 and token[2]:
            keys.add(token[1])
        if depth == 0:
            break
    return keys


def is_json_list(head: str) -> bool:
    """Whether the file begins with a JSON list."""
    return head.lstrip(_BLANK).startswith("[")


def root_tag(head: str) -> str:
    """The name of an XML file's root element; empty if there is none."""
    found = _TAG.search(re.sub(r"<!--.*?-->", "", head, flags=re.DOTALL))
    return found.group(1) if found else ""


def detect_reader(formats: Mapping[str, Format], source: Source) -> str:
    """Detect the format of a source; returns its name."""
    readable = {name: row for name, row in formats.items() if row.read is not None}
    names = _by_suffix(readable, source)
    if len(names) > 1:
        head = _head(source)
        if head is not None and not head.strip(_BLANK):
            return names[0]  # an empty file has no documents in any format
        names = [name for name in names if _matches(readable[name], head or "")]
    if names == [_PLAIN]:
        _refuse_annotation(readable, source)
    if len(names) == 1:
        return names[0]
    raise UsageError(
        f"cannot detect the format of {source.name}: give it with --from "
        f"(one of {', '.join(names or readable)})"
    )


def detect_writer(formats: Mapping[str, Format], target: Target) -> str:
    """Choose the format for an output by its file name; native JSONL for standard output."""
    if target.path == STDOUT:
        return "jsonl"
    writable = {name: row for name, row in formats.items() if row.write is not None}
    for name, row in writable.items():
        if has_suffix(target.path, row):
            return name
    raise UsageError(
        f"cannot detect a format from the name {target.name}: give it with --to "
        f"(one of {', '.join(writable)})"
    )


def _by_suffix(formats: Mapping[str, Format], source: Source) -> list[str]:
    if source.path == STDIN:
        return [name for name, row in formats.items() if row.matches_head is not None]
    folder = Path(source.path)
    if not folder.is_dir():
        return _by_name(formats, source.path)
    files = [path.name for path in names_in(folder) if path.is_file()]
    inside = {name for file in files for name in _by_name(formats, file)}
    if not inside:
        known = " of a known format" if files else ""
        raise UsageError(f"the folder {source.name} has no file{known}")
    # A text file next to an annotation file belongs to the annotation.
    return sorted(inside - {_PLAIN} or inside)


def _by_name(formats: Mapping[str, Format], path: str) -> list[str]:
    """The formats with the longest matching suffix: `.apf.xml` before `.xml`."""
    name = path.removesuffix(".gz")
    fits = {
        key: max((len(suffix) for suffix in row.suffixes if name.endswith(suffix)), default=0)
        for key, row in formats.items()
    }
    longest = max(fits.values(), default=0)
    return [key for key, length in fits.items() if length == longest > 0]


def _head(source: Source) -> str | None:
    """The beginning of a file; None for a folder."""
    path = Path(source.path)
    if path.is_dir():
        return None
    if source.path != STDIN and not path.is_file():
        raise UsageError(f"{source.name} can be read only once: give its format with --from")
    return source.head()


def _matches(row: Format, head: str) -> bool:
    return row.matches_head is not None and row.matches_head(head)


def _refuse_annotation(formats: Mapping[str, Format], source: Source) -> None:
    """Refuse a file with annotation but the name of plain text: its entities would be lost."""
    first = files_of(source, formats[_PLAIN])[0]
    try:
        head = first.head() if Path(first.path).is_file() else ""  # a pipe can be read only once
    except FormatError:
        return  # its reader reports the error, or skips the file
    structured = head.lstrip(_BLANK).startswith(("{", "[", "<", "#begin document"))
    if not structured and not _has_tags(head):
        return
    for name, row in formats.items():
        if _matches(row, head):
            raise UsageError(
                f"{source.name} has the name of plain text but looks like {name}: "
                f"give --from {name} or --from {_PLAIN}"
            )


def _has_tags(head: str) -> bool:
    """Whether every line ends in a tag, except comments and -DOCSTART- lines."""
    fewest, most = _TAGGED_LINES
    lines = head.split("\n")[:-1][:most]  # the last one may be incomplete
    words = [line for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    return len(words) >= fewest and all(map(_TAGGED_LINE.fullmatch, words))
