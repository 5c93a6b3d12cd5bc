"""spandet benchmark table, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spandet.benchmarking import recipe_table as tables
from spandet.cli import app
from spandet.errors import SpandetError
from spandet.formats import write
from spandet.training import TrainingError
from support.benchmark_toys import RECIPE, documents


def run(place: Path, *more: str) -> Result:
    (place / "toy.toml").write_text(RECIPE.to_toml())
    write(documents(12, seed=1), str(place / "train.jsonl"))
    write(documents(6, seed=2), str(place / "dev.jsonl"))
    files = ["--train", str(place / "train.jsonl"), "--dev", str(place / "dev.jsonl")]
    command = ["benchmark", "table", str(place / "toy.toml"), *files, "--out", str(place / "out")]
    return CliRunner().invoke(app, [*command, *more])


def test_a_table_is_written_in_three_forms(tmp_path: Path) -> None:
    done = run(tmp_path, "--set", "training.epochs=1", "--limit", "8")
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    found = json.loads((out / "table.json").read_text())
    assert found["train"]["sentences"] == 8
    assert found["set"] == ["training.epochs=1"]
    (row,) = found["lists"][0]["rows"]
    assert row["runs"][0]["seed"] == 0
    assert row["name"] in (out / "table.md").read_text()
    assert "<svg" in (out / "table.html").read_text()
    assert "1/1" in done.stdout


def test_a_failed_run_is_reported_and_the_exit_code_is_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise TrainingError("the loss is not a number")

    monkeypatch.setattr(tables, "train", failing)
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "failed: the loss is not a number" in done.stderr
    assert (tmp_path / "out" / "table.md").exists()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--seeds", "0,x"], "expected numbers such as 0,1"),
        (["--set", "training.epoch=1"], "epochs"),
    ],
)
def test_a_bad_argument_is_an_error_before_training(
    tmp_path: Path, more: list[str], what: str
) -> None:
    done = run(tmp_path, *more)
    assert isinstance(done.exception, SpandetError)
    assert what in str(done.exception)
    assert not (tmp_path / "out").exists()
