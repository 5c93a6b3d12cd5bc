"""spandet benchmark speed and train, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from support.benchmark_toys import toy_folder

QUICK = ["--timed", "8", "--rounds", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.getbasetemp())


def run(*arguments: object) -> str:
    command = ["benchmark", *map(str, arguments), *QUICK]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def check(found: dict[str, Any]) -> None:
    rate, bare = found["sentences_per_second"], found["bare_sentences_per_second"]
    assert found["ratio"] == pytest.approx(bare / rate)
    assert sum(row["sentences"] for row in found["by_length"]) == found["sentences"] == 30
    rates = [row["sentences_per_second"] for row in found["by_length"]]
    assert min(rates) <= rate <= max(rates)


def test_speed_is_one_object(folder: Path) -> None:
    found = json.loads(
        run("speed", folder / "model", folder / "dev.jsonl", "--json", "--lengths", "4,8")
    )
    check(found)
    assert found["what"] == "prediction"
    assert found["of"] == "model"
    assert found["predict"]["sentences_per_second"] > 0
    assert [row["words"] for row in found["detector_alone"]] == [4, 8]


@pytest.mark.slow
def test_a_training_step_is_one_object(folder: Path) -> None:
    options = ["--json", "--parts", "--set", "training.batch_sentences=5"]
    found = json.loads(run("train", folder / "toy.toml", folder / "dev.jsonl", *options))
    check(found)
    assert found["what"] == "training"
    assert found["timing"]["batch"].startswith("at most 5 sentences")
    assert found["profile"]["shares_of_forward"]["detector"] > 0


@pytest.mark.slow
def test_a_page_shows_rates_and_ratio(folder: Path) -> None:
    page = folder / "page.html"
    shown = run("speed", folder / "model", folder / "dev.jsonl", "--html", page, "--markdown")
    assert "### Recognizer.predict" in shown
    assert page.read_text().count("<svg") == 2
