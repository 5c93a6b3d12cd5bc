"""A closed output pipe is not an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spandet import write
from spandet.cli import CLOSED_PIPE
from spandet.text import Document


@pytest.mark.parametrize("command", ["convert", "view", "stats"])
def test_a_command_ends_silently_when_its_output_pipe_is_closed(
    command: str, tmp_path: Path
) -> None:
    write([Document(f"text {n}") for n in range(100)], tmp_path / "in.jsonl")
    with subprocess.Popen(
        [sys.executable, "-m", "spandet", command, str(tmp_path / "in.jsonl")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        message = running.stderr.read()
    assert (running.returncode, message) == (CLOSED_PIPE, b"")
