"""Outputs: a file or folder that is written completely or not at all, or standard output."""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from spandet.errors import FormatError, UsageError

STDOUT = "-"


@dataclass(frozen=True)
class Target:
    """A file (compressed if its name ends in `.gz`), a folder or, as `-`, standard output."""

    path: str

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "<stdout>" if self.path == STDOUT else self.path

    @contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """Open a stream that replaces the file when the block ends without an exception."""
        try:
            with _stdout() if self.path == STDOUT else _replacing(Path(self.path)) as raw:
                if self.path.endswith(".gz"):
                    # Without file name and time, so that equal data give equal files.
                    with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped:
                        yield cast("BinaryIO", zipped)
                else:
                    yield raw
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"cannot write {self.name}: {error.strerror or error}") from error

    @contextmanager
    def text(self) -> Iterator[TextIO]:
        """The same for UTF-8 text, with unchanged line ends."""
        with self.binary() as raw:
            stream = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
            try:
                yield stream
                stream.flush()
            except UnicodeEncodeError as error:
                bad = error.object[error.start]
                raise FormatError(
                    f"character U+{ord(bad):04X} is a lone surrogate, which UTF-8 cannot hold",
                    self.name,
                ) from error
            finally:
                stream.detach()

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Create a folder that gets its name when the block ends without an exception."""
        final = Path(self.path)
        if self.path == STDOUT:
            raise UsageError("this format writes a folder of files: give the folder's name, not -")
        if final.exists() and (not final.is_dir() or any(final.iterdir())):
            raise UsageError(f"{final} exists already: give a new or empty folder")
        draft = _draft_of(final)
        try:
            draft.mkdir(parents=True)
            yield draft
            draft.replace(final)
        except OSError as error:
            raise UsageError(f"cannot write {final}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def remove_drafts(self) -> None:
        """Remove temporary files and folders that killed writers of this target have left.

        Call it only while no other process can write the target.
        """
        # The draft of a file is next to the target of a link, that of a folder next to the link.
        for final in {Path(self.path).absolute(), Path(self.path).resolve()}:
            draft = re.compile(re.escape(f".{final.name}.") + r"[0-9a-f]{8}\.part")
            with suppress(OSError):  # a draft that cannot be removed does no harm
                for path in final.parent.iterdir():
                    if draft.fullmatch(path.name):
                        shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    final = path.resolve()  # a link is kept, and its target replaced
    if final.exists() and not final.is_file():  # a pipe or a device cannot be replaced
        with final.open("wb") as stream:
            yield stream
        return
    draft = _draft_of(final)
    try:
        with draft.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if final.exists():
            shutil.copymode(final, draft)
        draft.replace(final)
    finally:
        draft.unlink(missing_ok=True)


def _draft_of(final: Path) -> Path:
    return final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
