"""No command overwrites its inputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from spandet.errors import UsageError
from spandet.formats import read, write

LINE = '{"text": "Zoe ran", "entities": [{"start": 0, "end": 3, "label": "PER"}]}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files, three names of the first one, and an annotation beside its text."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_text(LINE)
    Path("symbolic.jsonl").symlink_to("a.jsonl")
    os.link("a.jsonl", "hard.jsonl")
    Path("brat").mkdir()
    Path("brat/x.ann").write_text("T1\tPER 0 3\tZoe\n")
    Path("brat/x.txt").write_text("Zoe ran")


def files() -> dict[str, str]:
    return {str(path): path.read_text() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "a.jsonl", "a.jsonl", "--to", "doccano"],
        ["convert", "a.jsonl", "brat/../a.jsonl"],
        ["convert", "symbolic.jsonl", "a.jsonl"],
        ["convert", "a.jsonl", "symbolic.jsonl"],
        ["convert", "a.jsonl", "hard.jsonl"],
        ["convert", "brat", "brat/x.jsonl"],
        ["convert", "brat/x.ann", "brat/x.txt", "--to", "jsonl"],
        ["stats", "a.jsonl", "--html", "hard.jsonl"],
        ["stats", "brat", "--html", "brat/x.txt"],
        ["view", "a.jsonl", "-o", "symbolic.jsonl"],
        ["view", "a.jsonl", "b.jsonl", "-o", "b.jsonl"],
        ["evaluate", "a.jsonl", "b.jsonl", "--html", "./b.jsonl"],
        ["compare", "b.jsonl", "b.jsonl", "a.jsonl", "--html", "hard.jsonl"],
        ["trace", "model", "--input", "a.jsonl", "--html", "a.jsonl"],
        ["benchmark", "speed", "model", "a.jsonl", "--html", "a.jsonl"],
        ["benchmark", "train", "recipe.toml", "a.jsonl", "--html", "a.jsonl"],
        ["benchmark", "sweep", "model", "a.jsonl", "--set", "a.b=1,2", "--html", "a.jsonl"],
    ],
)
def test_an_output_that_is_an_input_is_refused(arguments: list[str]) -> None:
    before = files()
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith("the output ")
    assert files() == before


@pytest.mark.parametrize("output", ["a.jsonl", "./brat/../a.jsonl", "symbolic.jsonl", "hard.jsonl"])
def test_writing_in_python_is_refused_as_well(output: str) -> None:
    with pytest.raises(UsageError, match=f"the output {output} is the input a.jsonl"):
        write(read("a.jsonl"), output, "doccano")
    assert Path("a.jsonl").read_text() == LINE
    write(list(read("a.jsonl")), output, "doccano")  # on purpose: all of it has been read
    assert Path("a.jsonl").read_text() != LINE or output == "hard.jsonl"


def test_an_output_beside_the_input_is_allowed() -> None:
    for arguments in (
        ["stats", ".", "--from", "jsonl", "--html", "x.html"],
        ["convert", "a.jsonl"],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 0
