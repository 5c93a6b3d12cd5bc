"""A check, before anything is written, that an output does not replace an input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from spandet.errors import UsageError
from spandet.formats.locking import lock_path
from spandet.formats.source import STDIN
from spandet.formats.target import STDOUT

SPOOL_SUFFIX = ".spool"
"""Suffix of the spool file of an output (see `spandet.jobs.spool`)."""


def refuse_overwriting(inputs: Iterable[str], output: str) -> None:
    """Check that writing the output changes no input.

    An output is refused if it is an input, if it is or would be inside an input folder (where the
    next run would read it), if it is a folder that contains an input, or if one of the two is the
    spool or the lock file of the other. Links are resolved.

    Args:
        inputs: Files and folders, `-` for standard input, or URIs.
        output: A file or folder, which need not exist, `-` for standard output, or a URI.

    Raises:
        UsageError: it would change an input; names both.
    """
    after = _status(output, is_output=True)
    if after is not None and not _can_be_replaced(after):
        return
    for name in inputs:
        if problem := _problem(name, output, after):
            shown = "standard output" if output == STDOUT else output
            raise UsageError(f"the output {shown} {problem}: choose another output")


def _problem(name: str, output: str, after: os.stat_result | None) -> str | None:
    """Why the output may not be written while `name` is read; `after` is its status, if any."""
    shown = "standard input" if name == STDIN else name
    before = _status(name, is_output=False)
    if after is not None and before is not None and os.path.samestat(before, after):
        return f"is the input {shown}"
    if name == STDIN or output == STDOUT:
        return None
    source, final = _place(name), _place(output)
    if source == final:  # it does not exist yet, or is on another machine
        return f"is the input {shown}"
    if source in _companions(final) or final in _companions(source):
        return f"and the input {shown} have names that one run uses for its output and spool"
    if final.is_relative_to(source):
        return f"is inside the input folder {shown}"
    if source.is_relative_to(final):
        return f"is a folder that contains the input {shown}"
    if after is not None and any(os.path.samestat(after, inside) for inside in _inside(source)):
        return f"is linked into the input folder {shown}"
    return None


def _place(name: str) -> Path:
    """The resolved path; a URI of another machine is treated as a path, for comparison."""
    local = url2pathname(urlsplit(name).path) if name.startswith("file:") else name
    return Path(local).resolve()


def _companions(output: Path) -> tuple[Path, Path]:
    """Files that a run writes next to its output: the spool and the lock file."""
    return output.with_name(output.name + SPOOL_SUFFIX), lock_path(output)


def _status(name: str, *, is_output: bool) -> os.stat_result | None:
    """The status of the file that a name refers to; None if there is none."""
    try:
        if name == (STDOUT if is_output else STDIN):
            return os.fstat((sys.stdout if is_output else sys.stdin).fileno())
        return _place(name).stat()
    except (OSError, ValueError):  # ValueError: a stream without a file, as in a notebook
        return None


def _can_be_replaced(status: os.stat_result) -> bool:
    """Whether it is a file or folder; writing to a terminal, pipe or device replaces nothing."""
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _inside(folder: Path) -> Iterator[os.stat_result]:
    """The status of everything in a folder, links resolved."""
    for path in folder.rglob("*"):
        if (status := _status(str(path), is_output=False)) is not None:
            yield status
