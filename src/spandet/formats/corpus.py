"""`Format`, a row of the table of formats, and `Corpus`, the iterable that `read` returns."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from spandet.errors import FormatError, UsageError
from spandet.formats.source import Parsed, Source
from spandet.formats.target import Target
from spandet.text import Document

_logger = logging.getLogger("spandet")

Reader = Callable[[Source], Iterator[Parsed]]
Writer = Callable[[Iterable[Document], Target], None]
SHOWN_SKIPS = 20
"""Maximum number of skipped records that messages list."""
_KEPT_SKIPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: its reader, its writer and the names of its files."""

    description: str
    """A short description for `spandet formats`."""
    read: Reader | None = None
    write: Writer | None = None
    suffixes: tuple[str, ...] = ()
    """Suffixes of its file names, without `.gz`; in a folder, only these files are read."""
    matches_head: Callable[[str], bool] | None = None
    """Whether a file with this beginning is in the format; used if several share a suffix."""
    text_suffixes: tuple[str, ...] = ()
    """Suffixes of separate text files in the same folder, for formats that only have offsets."""
    document_per: Literal["file", "line"] | None = None
    """The unit with exactly one document: a file, or a line that is not empty. None: neither, so
    documents cannot be counted without parsing them."""
    layers: int | None = None
    """Maximum number of entities that may share a word in writing; None for any number."""
    variant_of: str | None = None
    """The format whose files it reads in another way; a variant is never detected."""


@dataclass
class Corpus:
    """The documents of a file or folder, read as a stream each time it is iterated."""

    source: Source
    format: Format
    skip_bad: bool = False
    skipped: list[FormatError] = field(default_factory=list)
    """The bad records that the last iteration skipped (with `skip_bad`): the first thousand."""
    skips: int = 0
    """Total number of records that the last iteration skipped."""

    def __iter__(self) -> Iterator[Document]:
        self.skipped.clear()
        self.skips = 0
        parts = files_of(self.source, self.format)
        for part in parts:
            try:
                yield from self._documents(part)
            except FormatError as error:
                # The rest of a damaged file cannot be read; the other files can.
                if not self.skip_bad or len(parts) == 1:
                    raise
                self._skip(error)

    def files(self) -> list[str]:
        """Every file that is read, including the text files of annotations."""
        parts = files_of(self.source, self.format)
        texts = (
            part.sibling(text, instead_of=suffix).path
            for part in parts
            for suffix in self.format.suffixes
            for text in self.format.text_suffixes
            if part.path.removesuffix(".gz").endswith(suffix)
        )
        return [*(part.path for part in parts), *filter(os.path.exists, texts)]

    def _documents(self, part: Source) -> Iterator[Document]:
        assert self.format.read is not None  # noqa: S101 (`read` has checked it)
        for parsed in self.format.read(part):
            if isinstance(parsed, Document):
                yield parsed
            elif self.skip_bad:
                self._skip(parsed)
            else:
                raise parsed

    def _skip(self, error: FormatError) -> None:
        self.skips += 1
        if len(self.skipped) < _KEPT_SKIPS:
            self.skipped.append(error)


def files_of(source: Source, format_: Format) -> list[Source]:
    """List the files to read: the file itself, or those of a folder with the format's suffix."""
    folder = Path(source.path)
    if not folder.is_dir():
        return [source]
    named = [path for path in names_in(folder) if has_suffix(path.name, format_)]
    found = [Source(str(path)) for path in named if _is_file(path)]
    if not found:
        wanted = " or ".join(format_.suffixes) or "of this format"
        raise UsageError(f"the folder {source.name} has no file {wanted}")
    return found


def names_in(folder: Path) -> list[Path]:
    """List everything in a folder and its subfolders, sorted; links to folders are not followed.

    Raises:
        UsageError: a folder cannot be read.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        found.extend(Path(place, name) for name in names)
        links = (Path(place, name) for name in folders if Path(place, name).is_symlink())
        for link in links:
            _warn_once(link, "a link to a folder")
    return sorted(found)


def _refuse_folder(error: OSError) -> None:
    raise UsageError(f"cannot read the folder {error.filename}: {error.strerror}") from None


def _is_file(path: Path) -> bool:
    """Whether it is a regular file; opening a pipe or a device could block."""
    Source(str(path)).check()
    if path.is_file():
        return True
    _warn_once(path, "a pipe, a socket or a device")
    return False


@cache
def _warn_once(path: Path, what: str) -> None:
    _logger.warning("%s is %s: skipped", path, what)


def has_suffix(name: str, format_: Format) -> bool:
    """Whether a file's name, with or without `.gz`, has a suffix of the format."""
    return name.removesuffix(".gz").endswith(format_.suffixes)
