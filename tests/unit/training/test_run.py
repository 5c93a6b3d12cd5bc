"""A run and its folder: checkpoints, crashes, locks, and checks at the start."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from spandet.errors import ConfigError, MissingExtraError, SpandetError, UsageError
from spandet.formats import write
from spandet.formats.locking import one_writer
from spandet.inference.manifest import MANIFEST
from spandet.inference.recognizer import Recognizer
from spandet.onnx_export import export
from spandet.packing import pack
from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.training import Recipe, train
from spandet.training.checkpoint import BEFORE, CHECKPOINT
from support.command_line import succeeds
from support.training_toys import documents

VALUES: dict[str, Any] = {
    "encoder": {"hashed": {"dim": 8, "rows": 32}, "fusion": {"dim": 8}},
    "detector": {"name": "biaffine"},
    "training": {"epochs": 3, "batch_sentences": 4, "checkpoint_minutes": 0, "log_steps": 1},
}
TRAIN, DEV = documents(12), documents(6, start=12)


def run(out: Path, dev: Sequence[Document] | None = DEV, **options: Any) -> Recognizer:
    data = options.pop("train", TRAIN)
    recipe = Recipe.from_values({**VALUES, **options.pop("values", {})})
    return train(recipe, data, dev, out=out, **{"progress": False, **options})


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def results(folder: Path) -> tuple[bytes, ...]:
    return tuple((folder / name).read_bytes() for name in ("model.safetensors", "config.json"))


class Killed(BaseException):
    """An exception that no code catches, like SIGKILL."""


def die(*_: object, **__: object) -> None:
    raise Killed


def recorded_renames(patch: pytest.MonkeyPatch, kill_at: int | None = None) -> list[str]:
    """Record the renames of model files, and raise `Killed` before one of them."""
    renamed: list[str] = []
    original = Path.replace

    def counted(path: Path, target: Path) -> Path:
        if path.parent.name == ".model.part" != Path(target).parent.name:
            if len(renamed) == kill_at:
                patch.setattr("spandet.inference.manifest.shutil.rmtree", lambda *_, **__: None)
                raise Killed
            renamed.append(path.name)
        return original(path, target)

    patch.setattr(Path, "replace", counted)
    return renamed


@pytest.fixture(scope="module")
def saves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """An uninterrupted run, and the renames of its model files."""
    folder = tmp_path_factory.mktemp("run") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        renamed = recorded_renames(patch)
        run(folder)
    return folder, renamed


@pytest.fixture(scope="module")
def whole(saves: tuple[Path, list[str]]) -> Path:
    return saves[0]


@pytest.fixture(scope="module")
def epochs_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after its last epoch."""
    folder = tmp_path_factory.mktemp("stopped") / "out"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr("spandet.training.run._Run._finish", die)
        run(folder)
    return folder


@pytest.fixture
def stopped(epochs_done: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(epochs_done, tmp_path / "out"))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(bytes(data))


def test_a_finished_run_has_neither_checkpoint_nor_lock(whole: Path) -> None:
    left = {name for name in names(whole) if "checkpoint" in name or name.startswith(".")}
    assert not left
    assert MANIFEST in names(whole)
    assert names(whole.parent) == {"whole"}


def test_after_a_damaged_checkpoint_the_older_one_is_used(
    whole: Path, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = stopped
    assert {CHECKPOINT, BEFORE} <= names(out)
    flip(out / CHECKPOINT)
    run(out, resume=True, progress=True)
    errors = capsys.readouterr().err
    assert "checkpoint.safetensors is damaged: its checksum differs: continuing from the" in errors
    assert results(out) == results(whole)
    assert len((out / "log.jsonl").read_bytes().splitlines()) == 9 + 3
    assert names(out) == names(whole)


def test_a_damaged_checkpoint_does_not_replace_the_intact_one(
    whole: Path, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(stopped / CHECKPOINT)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("spandet.training.epochs.TrainingLoop.run", die)
        run(stopped, resume=True)
    assert not (stopped / BEFORE).exists()
    run(stopped, resume=True)
    assert results(stopped) == results(whole)


def test_a_run_on_several_files_is_that_on_their_documents(
    whole: Path, stopped: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    write(TRAIN[:5], files[0])
    write(TRAIN[5:], files[1])
    with pytest.raises(UsageError, match=r"this is another run .*train data was"):
        run(stopped, train=files[::-1], resume=True)
    run(stopped, train=files, resume=True)
    assert results(stopped) == results(whole)

    write(DEV, tmp_path / "dev.jsonl")
    (tmp_path / "recipe.toml").write_text(Recipe.from_values(VALUES).to_toml())
    given = [option for file in files for option in ("--train", str(file))]
    out = tmp_path / "by-command"
    succeeds(
        "train", tmp_path / "recipe.toml", *given, "--dev", tmp_path / "dev.jsonl", "--out", out
    )
    assert results(out) == results(whole)


def test_two_damaged_checkpoints_are_an_error_with_both_names(stopped: Path) -> None:
    out = stopped
    flip(out / CHECKPOINT)
    flip(out / BEFORE)
    with pytest.raises(UsageError, match=r"no checkpoint is intact: .*nt\.safetensors is .*before"):
        run(out, resume=True)
    (out / BEFORE).unlink()
    with pytest.raises(UsageError, match=r"checkpoint\.safetensors is damaged: its checksum diff"):
        run(out, resume=True)


def test_a_run_killed_between_renames_resumes_from_the_older_checkpoint(
    whole: Path, stopped: Path
) -> None:
    out = stopped
    (out / CHECKPOINT).unlink()
    with pytest.raises(UsageError, match="holds a run already"):
        run(out)
    run(out, resume=True)
    assert results(out) == results(whole)


def test_missing_lines_of_the_log_are_reported(
    whole: Path, stopped: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = stopped
    log = out / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:4]) + lines[4][:10])
    with caplog.at_level(logging.WARNING, logger="spandet"):
        run(out, resume=True)
    assert "log.jsonl has" in caplog.text
    assert "lines are lost" in caplog.text
    assert log.read_bytes() == b"".join(lines[:4])
    assert results(out) == results(whole)


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [1, 5, 7, -3, -1])
def test_a_run_killed_while_it_replaces_a_model_can_be_finished(
    saves: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int
) -> None:
    """In the first save, in the first that replaces a model, and in the last one."""
    out, (whole, renamed) = tmp_path / "out", saves
    assert renamed == ["config.json", "model.safetensors", "vocabulary.json", MANIFEST] * 4
    with monkeypatch.context() as patch, pytest.raises(Killed):
        recorded_renames(patch, kill_at % len(renamed))
        run(out)
    with pytest.raises(UsageError, match=r"manifest\.json is missing"):
        Recognizer.from_pretrained(out)
    run(out, resume=True)
    assert results(out) == results(whole)
    assert names(out) == names(whole)


def with_part(**parts: Any) -> dict[str, Any]:
    return {"values": {"encoder": {**VALUES["encoder"], **parts}}}


TAGGED = with_part(tags={"dim": 4, "min_count": 1})


def partial_ids() -> list[Document]:
    return [replace(DEV[0], id="a"), replace(DEV[1], id=None), *DEV[2:]]


def untagged_dev_of_tagged_train() -> dict[str, Any]:
    entity = [Entity(WordSpan(0, 1), "thing")]
    rows = [WordRow(["a", "b"], entity, ["XY", "ZZ"])] * 4
    return {**TAGGED, "train": [Document.from_rows(rows)]}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dev": partial_ids()}, UsageError, r"dev data \(.*\) cannot be scored: .* has no id"),
        ({"dev": [Document("no entity")]}, UsageError, "the dev data .* have no entity"),
        (with_part(word_vectors={"path": "no.vec"}), SpandetError, "cannot read no.vec"),
        (with_part(transformer={"name": "/no"}), ConfigError, "cannot be loaded"),
        (TAGGED, ConfigError, r"\[encoder.tags\] needs part-of-speech tags, and the"),
        (untagged_dev_of_tagged_train(), UsageError, "no tagger for these is known"),
    ],
)
def test_problems_of_the_end_of_a_run_are_errors_at_its_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("spandet.training.epochs.TrainingLoop.run", die)
    with pytest.raises(error, match=words):
        run(tmp_path / "runs" / "out", **options)
    assert names(tmp_path) == set()


def test_a_missing_tensorboard_is_an_error_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="tensorboard"):
        run(tmp_path / "out", overrides=["training.tensorboard=true"])
    assert names(tmp_path) == set()


def test_sentences_without_tags_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entity = [Entity(WordSpan(0, 1), "thing")]
    rows = [WordRow(["a", "b"], entity, ["XY", "ZZ"]), WordRow(["a", "b"], entity)]
    with caplog.at_level(logging.WARNING, logger="spandet"):
        run(tmp_path / "out", dev=None, **TAGGED, train=[Document.from_rows(rows)])
    assert "1 of 2 sentences of the training data have no tags" in caplog.text


def test_a_run_without_a_checkpoint_can_be_started_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("spandet.training.run_folder.RunFolder.checkpoint", die)
        run(out)
    assert names(out) == {"recipe.toml", "log.jsonl"}
    run(out)
    assert results(out) == results(whole)


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_in_a_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    out = tmp_path / "out"
    checked: list[Path] = []
    monkeypatch.setattr(
        "spandet.training.run.check_folder", lambda folder, **_: checked.append(folder)
    )
    busy = r"out is being written by process \d+"
    with one_writer(out), pytest.raises(UsageError, match=busy):
        run(out, resume=resume)
    assert not checked


def test_only_the_main_process_of_a_run_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spandet.training.run.build_accelerator", die)
    monkeypatch.setenv("RANK", "1")
    with one_writer(tmp_path / "out"), pytest.raises(Killed):
        run(tmp_path / "out")
    monkeypatch.setenv("RANK", "0")
    with one_writer(tmp_path / "out"), pytest.raises(UsageError, match="is being written"):
        run(tmp_path / "out")


@pytest.mark.parametrize(
    "command",
    [
        ["train", "no.toml", "--train", "no.jsonl", "--out", "OUT"],
        ["pack", "bio-en", "OUT", "--data", "no.jsonl"],
        ["export", "bio-en", "--onnx", "OUT", "--data", "no.jsonl"],
    ],
)
def test_commands_check_the_lock_before_they_read_data(tmp_path: Path, command: list[str]) -> None:
    words = [word.replace("OUT", str(tmp_path / "out")) for word in command]
    with one_writer(tmp_path / "out"):
        done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert "out is being written by process" in str(done.exception)


def test_the_library_locks_its_output_folders(tmp_path: Path) -> None:
    out = tmp_path / "out"
    busy = "out is being written by process"
    with one_writer(out), pytest.raises(UsageError, match=busy):
        pack("bio-en", out, data={"dev": DEV})
    with one_writer(out), pytest.raises(UsageError, match=busy):
        export("bio-en", out)
