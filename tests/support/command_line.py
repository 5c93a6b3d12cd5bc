"""Runs `spandet …` in the process of the test, so that torch is not loaded again."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import cast
from unittest.mock import patch

from spandet.cli import main


@dataclass(frozen=True)
class Ran:
    """The result of a command, with the attribute names of `subprocess`."""

    returncode: int
    stdout: str
    stderr: str


def spandet(*arguments: object, stdin: str | None = None) -> Ran:
    """Run a command; returns its output and exit code."""
    raw = io.BufferedReader(cast("io.RawIOBase", io.BytesIO((stdin or "").encode())))
    given = io.TextIOWrapper(raw, encoding="utf-8", newline="")
    out, err = _stream(), _stream()
    argv = ["spandet", *map(str, arguments)]
    streams = redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given)
    with streams[0], streams[1], streams[2], patch.object(sys, "argv", argv):
        code = _code()
    return Ran(code, _text(out), _text(err))


def succeeds(*arguments: object, stdin: str | None = None) -> str:
    """Run a command that must succeed; returns its standard output."""
    done = spandet(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _code() -> int:
    try:
        main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    return 0


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.detach()
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()
