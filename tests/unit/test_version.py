"""The version, in Python and on the command line, and what `dir(spandet)` lists."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import spandet
from spandet.cli import app


def test_the_version_is_that_of_the_installed_package() -> None:
    assert spandet.__version__ == importlib.metadata.version("spandet")


def test_a_source_tree_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert spandet.__version__ == "unknown"


def test_the_command_line_prints_the_version_and_stops() -> None:
    done = CliRunner().invoke(app, ["--version", "no-such-command"])
    assert (done.exit_code, done.output) == (0, f"spandet {spandet.__version__}\n")


def test_printing_the_version_loads_no_torch() -> None:
    code = (
        "import sys, spandet.cli; sys.argv = ['spandet', '--version']\n"
        "try: spandet.cli.main()\n"
        "finally: print([m for m in ('torch', 'transformers', 'spacy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"spandet {spandet.__version__}\n[]\n"


def test_dir_lists_every_public_name_and_nothing_internal() -> None:
    names = dir(spandet)
    assert {*spandet.__all__, "__version__", "__doc__"} <= set(names)
    assert {name for name in names if not name.startswith("__")} == set(spandet.__all__)
