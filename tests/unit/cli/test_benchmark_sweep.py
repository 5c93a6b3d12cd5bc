"""spandet benchmark sweep, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from spandet.errors import SpandetError
from support.benchmark_toys import toy_folder

QUICK = ["--timed", "8", "--rounds", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.getbasetemp())


def run(folder: Path, *arguments: str) -> str:
    command = ["benchmark", "sweep", str(folder / "model"), str(folder / "dev.jsonl"), *QUICK]
    done = CliRunner().invoke(app, [*command, *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_json_is_one_object_with_a_row_for_each_value(folder: Path) -> None:
    found = json.loads(run(folder, "--set", "detector.steps=1,2", "--json", "--limit", "12"))
    assert [row["set"] for row in found["rows"]] == [[], ["detector.steps=1"], ["detector.steps=2"]]
    assert found["data"]["sentences"] == 12
    assert found["data"]["name"] == "dev.jsonl (the first 12 sentences)"
    assert found["timing"]["clock"] == "CPU time"


def test_a_page_and_tables_are_written(folder: Path) -> None:
    page = folder / "page.html"
    options = ["--set", "detector.steps=1,2", "--set", "decoding.threshold=0.3,0.5"]
    shown = run(folder, *options, "--html", str(page), "--limit", "12", "--markdown")
    assert "### detector.steps" in shown
    assert "### decoding.threshold" in shown
    assert page.read_text().count("<svg") == 4


def test_a_setting_that_does_not_exist_is_an_error(folder: Path) -> None:
    command = ["benchmark", "sweep", str(folder / "model"), str(folder / "dev.jsonl")]
    done = CliRunner().invoke(app, [*command, "--set", "detector.step=1"])
    assert isinstance(done.exception, SpandetError)
    assert "did you mean steps" in str(done.exception)
