"""Arguments that `spandet predict` refuses before torch is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet import write
from spandet.cli import app
from spandet.errors import UsageError
from spandet.formats.locking import one_writer
from spandet.text import Document


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "spandet.inference.recognizer", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    write([Document("text")], tmp_path / "in.jsonl")
    return tmp_path / "in.jsonl"


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["predict", "model", *map(str, arguments)])
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


@pytest.mark.parametrize("options", [[], ["--resume"], ["--overwrite"], ["--engine", "ray"]])
def test_a_second_run_with_the_same_output(source: Path, options: list[str]) -> None:
    out = source.parent / "out.jsonl"
    with one_writer(out):
        before = sorted(path.name for path in source.parent.iterdir())
        message = refused(source, "-o", out, *options)
        assert sorted(path.name for path in source.parent.iterdir()) == before
    assert message.startswith(f"{out} is being written by process ")


@pytest.mark.parametrize("options", [[], ["--resume"], ["--overwrite"], ["--engine", "ray"]])
def test_an_output_that_is_an_input(source: Path, options: list[str]) -> None:
    gold = source.read_bytes()
    message = refused(source, "-o", source, *options)
    assert message == f"the output {source} is the input {source}: choose another output"
    assert source.read_bytes() == gold
    assert list(source.parent.iterdir()) == [source]
