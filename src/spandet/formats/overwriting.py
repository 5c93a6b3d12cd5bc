"""No command may replace what it reads: a check to make before anything is written."""

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
"""The name of a prediction's spool is that of its output with this at the end."""


def refuse_overwriting(inputs: Iterable[str], output: str) -> None:
    """Check that writing the output changes no input, under whatever name.

    An output is refused if it is an input, if it is or would be inside an input folder (where the
    next run would read it), if it is a folder that holds an input, or if one of the two is the
    spool or the lock of the other. Links and other spellings of a path count as what they lead to.

    Args:
        inputs: Files and folders, `-` for standard input, or URIs.
        output: A file or folder, which need not exist, `-` for standard output, or a URI.

    Raises:
        UsageError: it would change one; names both.
    """
    after = _status(output, is_output=True)
    if after is not None and not _can_be_replaced(after):
        return
    for name in inputs:
        if problem := _problem(name, output, after):
            shown = "standard output" if output == STDOUT else output
            raise UsageError(f"the output {shown} {problem}: name another output")


def _problem(name: str, output: str, after: os.stat_result | None) -> str | None:
    """What is wrong with an output while `name` is read; `after` is its status, if it exists."""
    shown = "standard input" if name == STDIN else name
    before = _status(name, is_output=False)
    if after is not None and before is not None and os.path.samestat(before, after):
        return f"is the input {shown}"
    if name == STDIN or output == STDOUT:
        return None
    source, final = _place(name), _place(output)
    if source == final:  # it appears later, or is on another machine
        return f"is the input {shown}"
    if source in _companions(final) or final in _companions(source):
        return f"and the input {shown} have names that one run uses for its output and spool"
    if final.is_relative_to(source):
        return f"is inside the input folder {shown}"
    if source.is_relative_to(final):
        return f"is a folder that holds the input {shown}"
    if after is not None and any(os.path.samestat(after, inside) for inside in _inside(source)):
        return f"is linked into the input folder {shown}"
    return None


def _place(name: str) -> Path:
    """The path without links; a URI of another machine stays a name that can be compared."""
    local = url2pathname(urlsplit(name).path) if name.startswith("file:") else name
    return Path(local).resolve()


def _companions(output: Path) -> tuple[Path, Path]:
    """What a run writes beside its output: the spool and the lock."""
    return output.with_name(output.name + SPOOL_SUFFIX), lock_path(output)


def _status(name: str, *, is_output: bool) -> os.stat_result | None:
    """Of the file that a name leads to; None where there is none."""
    try:
        if name == (STDOUT if is_output else STDIN):
            return os.fstat((sys.stdout if is_output else sys.stdin).fileno())
        return _place(name).stat()
    except (OSError, ValueError):  # ValueError: a stream without a file, as in a notebook
        return None


def _can_be_replaced(status: os.stat_result) -> bool:
    """Is it a file or a folder? What goes to a terminal, a pipe or a device replaces nothing."""
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _inside(folder: Path) -> Iterator[os.stat_result]:
    """The files of a folder, as links lead to them."""
    for path in folder.rglob("*"):
        if (status := _status(str(path), is_output=False)) is not None:
            yield status
