"""A format is a row in a table; a corpus is what `read` gives: documents, as often as you like."""

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
"""So many of the bad records that were passed over are named one by one."""
_KEPT_SKIPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one kind of file is read and written."""

    about: str
    """What it is, in a few words for `spandet formats`."""
    read: Reader | None = None
    write: Writer | None = None
    suffixes: tuple[str, ...] = ()
    """File names that suggest it, without `.gz`; in a folder, the files that are its records."""
    knows: Callable[[str], bool] | None = None
    """Does a file that begins like this look like it? Asked only where suffixes leave a choice."""
    beside: tuple[str, ...] = ()
    """Suffixes of the texts that stand beside its files."""
    document_per: Literal["file", "line"] | None = None
    """What holds exactly one document: a file, or a line that is not empty. None: neither, so that
    documents cannot be counted without parsing them."""
    layers: int | None = None
    """How many entities may share a word when it is written; None: any number."""
    variant_of: str | None = None
    """The format whose files these are too; a variant is found only by its name."""


@dataclass
class Corpus:
    """The documents of a file or folder, read anew, as a stream, each time it is iterated."""

    source: Source
    format: Format
    skip_bad: bool = False
    skipped: list[FormatError] = field(default_factory=list)
    """What the last iteration passed over (with `skip_bad`), in order: the first thousand."""
    skips: int = 0
    """How many it passed over in all."""

    def __iter__(self) -> Iterator[Document]:
        self.skipped.clear()
        self.skips = 0
        parts = files_of(self.source, self.format)
        for part in parts:
            try:
                yield from self._documents(part)
            except FormatError as error:
                # What follows the damage in this file is lost; the other files are not.
                if not self.skip_bad or len(parts) == 1:
                    raise
                self._skip(error)

    def files(self) -> list[str]:
        """Every file that is read, the texts beside annotations among them."""
        parts = files_of(self.source, self.format)
        texts = (
            part.sibling(text, instead_of=suffix).path
            for part in parts
            for suffix in self.format.suffixes
            for text in self.format.beside
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
    """The files to read: the one, or those of a folder with the format's suffix, in order."""
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
    """What is in a folder and its folders, in order, whatever it is; links to folders stay closed.

    Raises:
        UsageError: one of them cannot be looked into.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        found.extend(Path(place, name) for name in names)
        links = (Path(place, name) for name in folders if Path(place, name).is_symlink())
        for link in links:
            _remark(link, "a link to a folder")
    return sorted(found)


def _refuse_folder(error: OSError) -> None:
    raise UsageError(f"cannot read the folder {error.filename}: {error.strerror}") from None


def _is_file(path: Path) -> bool:
    """Can it be read as a file? To open a pipe or a device may take for ever."""
    Source(str(path)).check()
    if path.is_file():
        return True
    _remark(path, "a pipe, a socket or a device")
    return False


@cache
def _remark(path: Path, what: str) -> None:
    """Say once that something is passed over."""
    _logger.warning("%s is %s: passed over", path, what)


def has_suffix(name: str, format_: Format) -> bool:
    """Does a file's name, gzipped or not, suggest the format?"""
    return name.removesuffix(".gz").endswith(format_.suffixes)
