from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from spandet.cli import app
from spandet.encoding import Encoder, EncoderSettings, Example
from spandet.encoding.vocabulary import Vocabulary
from spandet.errors import ConfigError, SpandetError, TrainingInterrupted, UsageError
from spandet.pretraining import PretrainingSettings, pretrain
from spandet.pretraining.loop import PretrainingLoop, steps_of
from spandet.training.checkpoint import CHECKPOINT
from spandet.training.loop import StopRequest
from spandet.training.step import Engine
from support.pretraining_toys import save_tiny_encoder, texts, tiny_settings
from support.training_toys import largest_difference

DOCUMENTS = texts(60)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_encoder(tmp_path_factory.mktemp("encoder"))


def run(out: Path, encoder: Path, *, resume: bool = False, **values: Any) -> Path:
    settings = tiny_settings(**{"dropout": 0.1, **values})
    return pretrain([DOCUMENTS], encoder, out=out, settings=settings, resume=resume, progress=False)


@pytest.fixture(scope="module")
def whole(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    return run(tmp_path_factory.mktemp("runs") / "whole", encoder)


def log_of(folder: Path) -> list[dict[str, Any]]:
    """Log lines without times and speeds."""
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [{k: v for k, v in one.items() if "second" not in k} for one in lines]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


class Crash(Exception):  # noqa: N818
    """An exception that no code catches, like SIGKILL."""


@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 7])
@pytest.mark.parametrize("minutes", [0.0, 10.0])
def test_a_resumed_run_equals_an_uninterrupted_run_exactly(
    at: int,
    minutes: float,
    whole: Path,
    encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a checkpoint after every step, or only after evaluations."""
    update, left = Engine.update, [at]

    def crash(self: Engine) -> float:
        if not left[0]:
            raise Crash
        left[0] -= 1
        return update(self)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "update", crash)
        with pytest.raises(Crash):
            run(tmp_path / "out", encoder, checkpoint_minutes=minutes)
    assert not (tmp_path / "out" / "run.json").exists()
    run(tmp_path / "out", encoder, resume=True, checkpoint_minutes=minutes)

    assert weights(tmp_path / "out") == weights(whole)
    assert log_of(tmp_path / "out") == log_of(whole)


@pytest.mark.parametrize("where", ["_evaluate", "_checkpoint"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_crash_around_an_evaluation_changes_nothing(
    where: str,
    number: int,
    whole: Path,
    encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, left = getattr(PretrainingLoop, where), [number]

    def crash(self: PretrainingLoop) -> None:
        if not left[0]:
            raise Crash
        left[0] -= 1
        before(self)

    with monkeypatch.context() as patch:
        patch.setattr(PretrainingLoop, where, crash)
        with pytest.raises(Crash):
            run(tmp_path / "out", encoder)
    run(tmp_path / "out", encoder, resume=True)

    assert weights(tmp_path / "out") == weights(whole)
    assert log_of(tmp_path / "out") == log_of(whole)


def test_a_signal_ends_it_with_a_checkpoint(
    whole: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "__enter__", lambda self: self._receive(15, None) or self)
        with pytest.raises(TrainingInterrupted, match=r"stopped after step 1;.*--resume"):
            run(tmp_path / "out", encoder)
    run(tmp_path / "out", encoder, resume=True)

    assert weights(tmp_path / "out") == weights(whole)


def test_the_folder_is_an_encoder(whole: Path, encoder: Path) -> None:
    settings = EncoderSettings.model_validate({"transformer": {"name": str(whole)}})
    example = Example(("baing", "deis", "unseen"))
    made = Encoder.build(settings, Vocabulary()).eval()
    features = made(made.prepare([example])).features

    assert features.isfinite().all()
    names = {path.name for path in whole.iterdir()}
    assert {"config.json", "tokenizer.json", "model.safetensors", "README.md"} <= names
    assert {"log.jsonl", "report.html", "run.json", "pretraining.toml"} <= names
    assert not names & {CHECKPOINT, "pieces"}
    assert not any(name.endswith(".part") for name in names)
    for name in ("config.json", "tokenizer.json"):
        ours, theirs = (json.loads((f / name).read_text()) for f in (whole, encoder))
        for values in (ours, theirs):
            values.pop("transformers_version", None)
        assert ours == theirs
    before = load_file(encoder / "model.safetensors")
    after = load_file(whole / "model.safetensors")
    assert after.keys() == {name for name in before if not name.startswith("pooler")}
    assert all((after[name] != before[name]).any() for name in ("embeddings.LayerNorm.weight",))


def test_training_reduces_the_loss_and_learns_dev(encoder: Path, tmp_path: Path) -> None:
    values: dict[str, Any] = {"steps": 40, "batch_blocks": 8, "evaluation_steps": 0, "dropout": 0.0}
    folder = run(tmp_path / "out", encoder, **values)

    first, last = [line for line in log_of(folder) if line["kind"] == "evaluation"]
    assert (first["step"], last["step"]) == (0, 40)
    assert last["loss"] < first["loss"] - 0.2
    assert last["accuracy"] > first["accuracy"] + 0.02


def test_report_and_card_have_the_results(whole: Path) -> None:
    evaluations = [line for line in log_of(whole) if line["kind"] == "evaluation"]
    page, card = ((whole / name).read_text() for name in ("report.html", "README.md"))
    facts = json.loads((whole / "run.json").read_text())

    assert [line["step"] for line in evaluations] == [0, 3, 6, 8]
    assert [line["step"] for line in facts["evaluations"]] == [0, 3, 6, 8]
    assert "Loss by step" in page
    assert "held-out" in page
    assert "https://" not in page
    assert facts["texts"][0]["sha256"] in card
    assert f"{evaluations[-1]['loss']:.4f}" in card
    assert "| documents in memory | 60 |" in card


def test_a_pretrained_encoder_can_be_pretrained_further(whole: Path, tmp_path: Path) -> None:
    further = run(tmp_path / "out", whole, steps=1, freeze_embeddings=True, vocabulary="corpus")

    before, after = (load_file(f / "model.safetensors") for f in (whole, further))
    changed = {name for name in before if (before[name] != after[name]).any()}
    assert "encoder.layer.0.output.dense.weight" in changed
    assert "embeddings.word_embeddings.weight" not in changed


def test_batches_of_a_step_are_averaged(encoder: Path, tmp_path: Path) -> None:
    """Eight blocks in one batch or in two: the same step."""
    values: dict[str, Any] = {"steps": 2, "dropout": 0.0}
    one = run(tmp_path / "one", encoder, batch_blocks=8, **values)
    two = run(tmp_path / "two", encoder, batch_blocks=4, accumulation=2, **values)

    found = [load_file(folder / "model.safetensors") for folder in (one, two)]
    assert largest_difference(*found) < 1e-4


def test_steps_follow_from_epochs() -> None:
    settings = PretrainingSettings(batch_blocks=4, accumulation=2)

    assert steps_of(settings, 80) == 10
    assert steps_of(settings, 81) == 11
    assert steps_of(settings.model_copy(update={"epochs": 0.25}), 80) == 3
    assert steps_of(settings.model_copy(update={"steps": 7}), 80) == 7


def test_the_written_settings_are_a_recipe(whole: Path) -> None:
    written = PretrainingSettings.load(whole / "pretraining.toml")

    assert written == tiny_settings(dropout=0.1)
    with pytest.raises(
        ConfigError, match=r"\[pretraining\] has no setting blok; did you mean block"
    ):
        PretrainingSettings.load(whole / "pretraining.toml", ["blok=3"])


@pytest.fixture
def refused(whole: Path, encoder: Path, tmp_path: Path) -> dict[str, tuple[Any, ...]]:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    bare = save_tiny_encoder(tmp_path / "bare", mask=False)
    new = tmp_path / "new"
    return {
        r"holds a run or an encoder already": (DOCUMENTS, encoder, whole, {}),
        r"is a file; give a folder": (DOCUMENTS, encoder, tmp_path / "file", {}),
        r"there is no run in .*new to resume": (DOCUMENTS, encoder, new, {"resume": True}),
        r"is another run .* lr was 0.01, is 0.5": (DOCUMENTS, encoder, whole, {"resume": True}),
        r"texts was": (DOCUMENTS[1:], encoder, whole, {"resume": True, "lr": 1e-2}),
        r"there is no text to learn from": ([], encoder, new, {}),
        r"empty cannot be loaded": (DOCUMENTS, tmp_path / "empty", new, {}),
        r"bare has no mask token": (DOCUMENTS, bare, new, {}),
        r"block: 129, but .* reads at most 128": (DOCUMENTS, encoder, new, {"block": 129}),
    }


@pytest.mark.parametrize("number", range(9))
def test_mistakes_are_errors_with_a_reason(
    number: int, refused: dict[str, tuple[Any, ...]]
) -> None:
    why, (documents, encoder, out, values) = list(refused.items())[number]
    resume = values.pop("resume", False)
    settings = tiny_settings(**{"dropout": 0.1, "lr": 0.5, **values})
    options = {"settings": settings, "resume": resume, "progress": False}
    with pytest.raises(SpandetError, match=why):
        pretrain([documents], encoder, out=out, **options)


def test_a_finished_run_is_not_changed(whole: Path, encoder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.iterdir()}

    run(whole, encoder, resume=True)

    assert {path: path.stat().st_mtime_ns for path in whole.iterdir()} == before


def test_mistakes_of_the_command_are_errors_with_a_reason(encoder: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.txt"
    one.write_text("ba dei.")
    words = ["--from", str(encoder), "--out", str(tmp_path / "out"), "--set", "block=16"]
    for source, why in ((tmp_path / "nowhere.jsonl", "there is no file"), (one, "is held out")):
        done = CliRunner().invoke(app, ["pretrain", str(source), *words])
        assert isinstance(done.exception, UsageError)
        assert why in str(done.exception)
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_bf16_is_used_if_it_is_set(encoder: Path, tmp_path: Path) -> None:
    folder = run(tmp_path / "out", encoder, precision="bf16", steps=2)

    saved = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.float32}
    assert "spandet" not in (folder / "config.json").read_text()
