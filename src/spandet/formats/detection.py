"""Which format is a file in? Its name decides; where several share a suffix, how it begins."""

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
"""So many lines that end in a tag, and only such, are columns; so many are looked at."""
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
    """Does the file begin a JSON list?"""
    return head.lstrip(_BLANK).startswith("[")


def root_tag(head: str) -> str:
    """The name of an XML file's root element; empty where there is none."""
    found = _TAG.search(re.sub(r"<!--.*?-->", "", head, flags=re.DOTALL))
    return found.group(1) if found else ""


def detect_reader(formats: Mapping[str, Format], source: Source) -> str:
    """The name of the format that a source is in."""
    readable = {name: row for name, row in formats.items() if row.read is not None}
    names = _by_suffix(readable, source)
    if len(names) > 1:
        head = _head(source)
        if head is not None and not head.strip(_BLANK):
            return names[0]  # whichever it is, there is no document in it
        names = [name for name in names if _knows(readable[name], head or "")]
    if names == [_PLAIN]:
        _refuse_annotation(readable, source)
    if len(names) == 1:
        return names[0]
    raise UsageError(
        f"cannot tell the format of {source.name}: say it with --from "
        f"(one of {', '.join(names or readable)})"
    )


def detect_writer(formats: Mapping[str, Format], target: Target) -> str:
    """The name of the format that a file's name asks for; native JSONL on standard output."""
    if target.path == STDOUT:
        return "jsonl"
    writable = {name: row for name, row in formats.items() if row.write is not None}
    for name, row in writable.items():
        if has_suffix(target.path, row):
            return name
    raise UsageError(
        f"cannot tell a format from the name {target.name}: say it with --to "
        f"(one of {', '.join(writable)})"
    )


def _by_suffix(formats: Mapping[str, Format], source: Source) -> list[str]:
    if source.path == STDIN:
        return [name for name, row in formats.items() if row.knows is not None]
    folder = Path(source.path)
    if not folder.is_dir():
        return _by_name(formats, source.path)
    files = [path.name for path in names_in(folder) if path.is_file()]
    inside = {name for file in files for name in _by_name(formats, file)}
    if not inside:
        known = " of a known format" if files else ""
        raise UsageError(f"the folder {source.name} has no file{known}")
    # A text beside its annotation is the annotation's, not a document of its own.
    return sorted(inside - {_PLAIN} or inside)


def _by_name(formats: Mapping[str, Format], path: str) -> list[str]:
    """The formats with the longest suffix that fits: `.apf.xml` before `.xml`."""
    name = path.removesuffix(".gz")
    fits = {
        key: max((len(suffix) for suffix in row.suffixes if name.endswith(suffix)), default=0)
        for key, row in formats.items()
    }
    longest = max(fits.values(), default=0)
    return [key for key, length in fits.items() if length == longest > 0]


def _head(source: Source) -> str | None:
    """How a file begins; None for a folder."""
    path = Path(source.path)
    if path.is_dir():
        return None
    if source.path != STDIN and not path.is_file():
        raise UsageError(f"{source.name} can be read only once: say its format with --from")
    return source.head()


def _knows(row: Format, head: str) -> bool:
    return row.knows is not None and row.knows(head)


def _refuse_annotation(formats: Mapping[str, Format], source: Source) -> None:
    """A corpus in a file that is only called like plain text would have no entities."""
    first = files_of(source, formats[_PLAIN])[0]
    try:
        head = first.head() if Path(first.path).is_file() else ""  # a pipe can be read only once
    except FormatError:
        return  # its reader will say so, and may pass over it
    marked = head.lstrip(_BLANK).startswith(("{", "[", "<", "#begin document"))
    if not marked and not _has_tags(head):
        return
    for name, row in formats.items():
        if _knows(row, head):
            raise UsageError(
                f"{source.name} is called like plain text and looks like {name}: "
                f"say it with --from {name} or --from {_PLAIN}"
            )


def _has_tags(head: str) -> bool:
    """Does every line end in a tag, but for comments and marks of documents?"""
    fewest, most = _TAGGED_LINES
    lines = head.split("\n")[:-1][:most]  # the last one may be cut
    words = [line for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    return len(words) >= fewest and all(map(_TAGGED_LINE.fullmatch, words))
