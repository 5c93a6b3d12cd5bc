"""brat standoff: a text in `a1.txt`, its entities in `a1.ann` beside it; "a1" is the id.

    T1	DNA 0 9	IL-2 gene
    T2	protein 0 4;10 18	IL-2 receptor
    #1	Score T2	0.98

Offsets count characters of the .txt file, half-open: "end" is the first character after the
entity. The fragments of a discontinuous entity are separated by `;`. The third column repeats the
text, with line ends as spaces and fragments joined by a space; it is checked, to detect a text that
was changed after its annotation. Relations, events, attributes and notes are ignored, except notes
of the type Score, which spandet writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from spandet.errors import FormatError, UsageError
from spandet.formats.records import checked_span, shown
from spandet.formats.source import STDIN, Parsed, SizeLimit, Source
from spandet.formats.target import Target
from spandet.text import CharSpan, Document, Entity

_ANNOTATION, _TEXT = ".ann", ".txt"
TEXT_SUFFIXES = (_TEXT,)
_ENTITY = re.compile(r"(T[^\t ]+)\t([^\t ]+) ([0-9 ;]+)\t(.*)", re.DOTALL)
_FRAGMENT = re.compile(r"([0-9]{1,18}) ([0-9]{1,18})")
_SCORE = re.compile(r"#[^\t]*\tScore (T[^\t ]+)\t([0-9.e-]+)")
_IGNORED = tuple("REAMN#*")
_AS_SPACES = str.maketrans("\r\n", "  ")
# Characters that some file system refuses or that hide a file, and the escape character itself.
_UNSAFE = re.compile(r'[%/\\<>:"|?*\x00-\x1f\x7f\ud800-\udfff]|^\.|[. ]\Z')
_ESCAPE = re.compile("%([0-9A-F]{2})")
_LONGEST_NAME = 200


def read(source: Source) -> Iterator[Parsed]:
    """Read the document of an .ann file and its .txt file in the same folder."""
    if source.path == STDIN:
        raise UsageError("brat needs a text beside the annotation: give a file or folder, not -")
    try:
        yield _document(source, source.sibling(_TEXT, instead_of=_ANNOTATION))
    except FormatError as error:
        yield error.at(source.name)


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents to a new folder, two files each, named by id or else by number.

    Raises:
        FormatError: a label contains white space, or two documents have the same file name.
    """
    with target.folder() as folder:
        for number, document in enumerate(documents):
            name = _file_name(document.id or "") or f"{number:06}"
            _create(folder / (name + _TEXT), document.text)
            _create(folder / (name + _ANNOTATION), "".join(_lines(document)))


def _document(source: Source, beside: Source) -> Document:
    if not Path(beside.path).is_file():
        raise FormatError(f"its text is missing, expected {beside.name}")
    text = beside.text(encoding="utf-8")  # brat counts a byte order mark as a character
    found, limit = _Annotation(text), SizeLimit(source.name, "annotation")
    for number, line in source.lines():
        if isinstance(line, FormatError):
            raise line
        try:
            limit.add(len(line))
            found.add(line)
        except FormatError as error:
            raise error.at(f"{source.name}:{number}") from None
    return Document(text, found.scored(), _id(source.stem))


@dataclass
class _Annotation:
    """The entities and scores of an .ann file, read line by line."""

    text: str
    entities: dict[str, Entity[CharSpan]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Parse one line."""
        if line.startswith("T"):
            self._add_entity(line)
        elif note := _SCORE.fullmatch(line):
            self.scores |= _score(*note.groups())
        elif line and not line.startswith(_IGNORED):
            raise FormatError(f"found {shown(line)}, expected a line that begins with T")

    def scored(self) -> tuple[Entity[CharSpan], ...]:
        """The entities in the order of their lines."""
        return tuple(
            replace(entity, score=self.scores.get(name)) for name, entity in self.entities.items()
        )

    def _add_entity(self, line: str) -> None:
        parts = _ENTITY.fullmatch(line)
        spans = [_FRAGMENT.fullmatch(span) for span in parts[3].split(";")] if parts else [None]
        if parts is None or None in spans:
            raise FormatError(
                f"found {shown(line)}, expected T1, a tab, a label and its offsets, a tab, its text"
            )
        name, label, offsets, expected = parts.groups()
        if name in self.entities:
            raise FormatError(f"{name} occurs twice, expected a different name for each entity")
        length = len(self.text)
        fragments = [
            checked_span(CharSpan, int(span[1]), int(span[2]), length) for span in spans if span
        ]
        found = _shown_text(self.text, fragments)
        if expected.translate(_AS_SPACES) != found:
            raise FormatError(
                f"the text at {offsets} is {shown(found)}, but the line has {shown(expected)}"
            )
        for left, right in pairwise(sorted(fragments)):
            if right.start < left.end:
                raise FormatError(f"fragments of {name} overlap, expected fragments apart")
        self.entities[name] = Entity.from_fragments(fragments, label)


def _score(name: str, value: str) -> dict[str, float]:
    try:
        score = float(value)
    except ValueError:
        return {}
    return {name: score} if 0 <= score <= 1 else {}  # not written by spandet: only a note


def _lines(document: Document) -> Iterator[str]:
    for number, entity in enumerate(document.entities, start=1):
        if not entity.label or re.search(r"\s", entity.label):
            problem = "has white space" if entity.label else "is empty"
            raise FormatError(f"the label {entity.label!r} {problem}, which brat cannot hold")
        spans = ";".join(f"{span.start} {span.end}" for span in entity.spans)
        text = _shown_text(document.text, entity.spans)
        yield f"T{number}\t{entity.label} {spans}\t{text}\n"
        if entity.score is not None:
            yield f"#{number}\tScore T{number}\t{entity.score!r}\n"


def _shown_text(text: str, spans: Sequence[CharSpan]) -> str:
    return " ".join(text[span.start : span.end] for span in spans).translate(_AS_SPACES)


def _create(path: Path, text: str) -> None:
    try:
        with path.open("xb") as out:
            out.write(text.encode())
    except FileExistsError:
        raise FormatError(f"another document has the file {path.name}: ids must differ") from None
    except UnicodeEncodeError as error:
        bad = ord(error.object[error.start])
        what = f"character U+{bad:04X} is a lone surrogate, which UTF-8 cannot hold"
        raise FormatError(what) from None


def _file_name(id_: str) -> str | None:
    """Escape an id as a portable file name, decoded by `_id`; None if it is empty or too long."""
    name = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", id_)
    return name if name and len(name.encode()) <= _LONGEST_NAME else None


def _id(stem: str) -> str:
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), stem)
    return plain if _file_name(plain) == stem else stem  # else the % is not an escape of ours
