"""spandet ensemble, and a+b where a command takes a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet import generate, read, write
from spandet.cli import app, main
from support.random_models import random_recognizer


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models and dev data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANDET_MODELS", str(tmp_path / "local"))
    for detector in ("biaffine", "span-jury"):
        random_recognizer(detector, decoding={"threshold": 0.05}).save_pretrained(detector)
    write(generate(12, seed=6), tmp_path / "dev.jsonl")
    return tmp_path


def run(*words: str) -> tuple[str, str]:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_an_ensemble_is_tuned_listed_and_used(place: Path) -> None:
    words = ("ensemble", "biaffine", "span-jury", "--dev", "dev.jsonl", "--out", "local/both")
    report = json.loads(run(*words, "--json")[0])
    assert [member["weight"] for member in report["members"]] == [1, 1]
    (score,) = report["scores"]
    assert score["data"] == "dev.jsonl"
    listed = json.loads(run("models", "both", "--json")[0])
    assert (listed["detector"], listed["dev_f1"]) == ("ensemble of 2", score["f1"])
    assert "An ensemble of `" in run("models", "both")[0]
    assert "ensemble of 2" in run("models")[0]
    _, remarks = run("predict", "both", "dev.jsonl", "-o", "found.jsonl")
    assert "threshold" not in remarks
    scores = json.loads(run("evaluate", "dev.jsonl", "found.jsonl", "--json")[0])
    assert scores["micro"]["f1"] == pytest.approx(score["f1"])
    assert (place / "local" / "both" / "manifest.json").exists()


def test_names_joined_with_plus_are_an_ensemble_with_the_mean_threshold(place: Path) -> None:
    _, remarks = run("predict", "biaffine+span-jury", "dev.jsonl", "-o", "one.jsonl")
    assert remarks.count("\n") == 1
    assert "the threshold is the mean of the members' thresholds" in remarks
    run("predict", "span-jury + biaffine", "dev.jsonl", "-o", "other.jsonl")
    assert (place / "one.jsonl").read_bytes() == (place / "other.jsonl").read_bytes()
    assert any(document.entities for document in read("one.jsonl"))
    given = ("--min-score", "0.4"), ("--set", "decoding.threshold=0.4")
    outputs = []
    for number, option in enumerate(given):
        output = f"{number}.jsonl"
        _, remarks = run("predict", "biaffine+span-jury", "dev.jsonl", "-o", output, *option)
        assert not remarks
        outputs.append((place / output).read_bytes())
    assert outputs[0] == outputs[1] != (place / "one.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ensemble biaffine biaffine --dev dev.jsonl --out x", "at least two different models"),
        ("ensemble biaffine nothing --dev dev.jsonl --out x", "there is no model 'nothing'"),
        ("ensemble biaffine span-jury --dev bare.jsonl --out x", "bare.jsonl have no entities"),
        ("ensemble biaffine span-jury --dev dev.jsonl --out biaffine", "biaffine"),
        ("trace biaffine+span-jury text", "an ensemble cannot be traced"),
        ("pack biaffine+span-jury x --data dev.jsonl", "expected a single model"),
        ("benchmark speed biaffine+span-jury dev.jsonl", "expected a single model"),
    ],
)
def test_mistakes_are_one_line(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    message: str,
) -> None:
    (place / "bare.jsonl").write_text('{"text": "a"}\n')
    monkeypatch.setattr("sys.argv", ["spandet", *words.split()])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert message in line
    assert not (place / "x").exists()
