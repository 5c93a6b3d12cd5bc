"""Training runs from a recipe to a model folder, with interruptions and crashes."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import spandet
from spandet.cli.train import train_command
from spandet.errors import ConfigError, UsageError
from spandet.inference.recognizer import Recognizer
from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.training import TrainingError, train
from spandet.training.data import Documents
from support.training_toys import documents, largest_difference

RECIPE = """
[encoder.hashed]
dim = 16
rows = 64
dropout = {dropout}

[encoder.fusion]
dim = 16

[detector]
name = "locate-and-label"
preset = "tuned"
lengths = [1, 2, 3]
dropout = {dropout}

[training]
epochs = 3
batch_sentences = 3
lr = 0.01
log_steps = 1
checkpoint_minutes = 0
"""

SPANDET = """
import torch, typer
from spandet.cli.train import train_command

torch.set_num_threads(1)
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(train_command)
app()
"""


class Place:
    """A folder with a recipe, data, and runs."""

    def __init__(self, folder: Path, *, dropout: float = 0.2) -> None:
        self.folder = folder
        self.recipe = folder / "tiny.toml"
        self.recipe.write_text(RECIPE.format(dropout=dropout))
        self.train, self.dev = folder / "train.jsonl", folder / "dev.jsonl"
        spandet.write(documents(40), self.train)
        spandet.write(documents(10, start=40), self.dev)
        (folder / "spandet_train.py").write_text(SPANDET)

    def command(self, out: str, *options: str, dev: bool = False) -> list[str]:
        chosen = ["--dev", str(self.dev)] if dev else []
        data = ["--train", str(self.train), *chosen, "--out", str(self.folder / out)]
        return [str(self.folder / "spandet_train.py"), str(self.recipe), *data, *options]

    def start(self, out: str, *options: str, dev: bool = False) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *self.command(out, *options, dev=dev)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def here(self, out: str, *data: Documents, **options: Any) -> Recognizer:
        """A run in this process, on one thread as in the others: sums of many threads differ."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return train(self.recipe, *data, out=self.folder / out, progress=False, **options)
        finally:
            torch.set_num_threads(threads)

    def finish(self, out: str, *options: str, dev: bool = False) -> str:
        process = self.start(out, *options, dev=dev)
        _, output = process.communicate(timeout=120)
        assert process.returncode == 0, output
        return output

    def log(self, out: str) -> list[dict[str, Any]]:
        """The lines of the log without times."""
        lines = [
            json.loads(line)
            for line in (self.folder / out / "log.jsonl").read_text().split("\n")
            if line
        ]
        for line in lines:
            del line["seconds"], line["sentences_per_second"]
        return lines

    def facts(self, out: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / out / "run.json").read_text())
        return found

    def weights(self, out: str) -> bytes:
        return (self.folder / out / "model.safetensors").read_bytes()


def wait_for(what: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = monotonic() + seconds
    while not what():
        assert monotonic() < deadline, "it never happened"
        sleep(0.005)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with an uninterrupted run: `whole`."""
    place = Place(tmp_path_factory.mktemp("training"))
    place.here("whole", place.train)
    return place


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_stopped_and_resumed_run_equals_an_uninterrupted_run(place: Place) -> None:
    """Stopped by SIGINT, then by SIGKILL in the middle of an epoch."""
    log = place.folder / "stopped" / "log.jsonl"
    process = place.start("stopped")
    wait_for(lambda: lines_in(log) >= 5 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "give the same command with --resume to continue from there" in output
    assert "Traceback" not in output

    process = place.start("stopped", "--resume")
    wait_for(lambda: lines_in(log) >= 20 or process.poll() is not None)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (place.folder / "stopped" / "run.json").exists()

    output = place.finish("stopped", "--resume")
    assert "resuming in epoch 2 after step" in output
    assert place.weights("stopped") == place.weights("whole")
    assert place.log("stopped") == place.log("whole")


def test_two_processes_give_the_result_of_one(tmp_path: Path) -> None:
    """The batches are divided unevenly: of 3 sentences into 2 and 1, of 1 into 1 and 0."""
    place = Place(tmp_path, dropout=0.0)
    changes = ["training.accumulation=2"]
    place.here("alone", place.train, place.dev, overrides=changes)
    options = [part for change in changes for part in ("--set", change)]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, *place.command("together", *options, dev=True)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr

    assert done.stderr.count("epoch 3/3") == 1  # only one of them prints
    one, other = (load_file(tmp_path / run / "model.safetensors") for run in ("alone", "together"))
    assert largest_difference(one, other) < 1e-5
    for ours, theirs in zip(place.log("alone"), place.log("together"), strict=True):
        assert theirs["losses"] == pytest.approx(ours["losses"], abs=1e-5)
        assert theirs.get("dev") == ours.get("dev")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with a complete run with dev: `done`."""
    place = Place(tmp_path_factory.mktemp("run"))
    place.here("done", place.train, place.dev)
    return place


def test_a_run_is_a_model_folder(run: Place) -> None:
    folder = run.folder / "done"
    names = {path.name for path in folder.iterdir()}
    recognizer = Recognizer.from_pretrained(folder)

    assert {"model.safetensors", "config.json", "recipe.toml", "log.jsonl"} <= names
    assert {"report.html", "README.md", "run.json"} <= names
    assert not any(name.startswith("checkpoint") or name.endswith(".part") for name in names)
    assert recognizer.labels == ("pair", "thing")
    facts = run.facts("done")
    predicted = recognizer.predict(spandet.read(run.dev))
    score = spandet.evaluate(spandet.read(run.dev), predicted, resamples=0).micro
    assert facts["dev"]["micro"]["f1"] == pytest.approx(score.f1)
    assert facts["dev"]["micro"]["f1"] >= max(e["dev"]["f1"] for e in facts["history"]) - 1e-9


def test_the_report_is_self_contained(run: Place) -> None:
    page = (run.folder / "done" / "report.html").read_text()

    for wanted in ("Loss by step", "F1 on dev", ">thing</td>", "[training]", "srcdoc="):
        assert wanted in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_the_card_has_the_known_facts(run: Place) -> None:
    card = (run.folder / "done" / "README.md").read_text()
    facts = run.facts("done")

    assert facts["data"]["train"]["sha256"] in card
    assert "| train | train.jsonl | 40 | 40 |" in card
    assert f"{100 * facts['dev']['micro']['f1']:.2f}" in card
    assert "Seed 0" in card
    assert str(run.folder) not in card  # no local paths in the card


def test_a_run_is_not_overwritten(run: Place) -> None:
    with pytest.raises(UsageError, match=r"done holds a run already: resume it \(--resume\) or"):
        run.here("done", run.train, run.dev)


def test_a_complete_run_is_not_changed(run: Place, capsys: pytest.CaptureFixture[str]) -> None:
    before = run.weights("done")
    train(run.recipe, run.train, run.dev, out=run.folder / "done", resume=True)

    assert "is complete already" in capsys.readouterr().err
    assert run.weights("done") == before


@pytest.mark.parametrize("finished", [True, False])
def test_another_recipe_or_other_data_cannot_be_resumed(
    run: Place, monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    out = "done" if finished else "unfinished"
    if not finished:
        monkeypatch.setattr("spandet.training.run._Run._finish", _raise_crash)
        with pytest.raises(KeyError):
            run.here(out, run.train, run.dev)

    words = r"another run than the one to resume: training\.lr was 0\.01, is 0\.02\. Give the same"
    with pytest.raises(UsageError, match=words):
        run.here(out, run.train, run.dev, overrides=["training.lr=0.02"], resume=True)
    with pytest.raises(UsageError, match=r"another run than the one to resume: train data was"):
        run.here(out, documents(39), run.dev, resume=True)
    assert "lr = 0.01\n" in (run.folder / out / "recipe.toml").read_text()


def _raise_crash(*_: object) -> None:
    raise KeyError


def test_a_run_that_crashed_at_its_end_can_be_finished(
    run: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("spandet.training.run.report_page", _raise_crash)
        with pytest.raises(KeyError):
            run.here("late", run.train, run.dev)
    run.here("late", run.train, run.dev, resume=True)

    assert (run.folder / "late" / "report.html").exists()
    configs = [(run.folder / name / "config.json").read_text() for name in ("late", "done")]
    assert configs[0] == configs[1]
    assert run.weights("late") == run.weights("done")


def test_resume_without_a_run_is_an_error(run: Place) -> None:
    with pytest.raises(UsageError, match=r"there is no run in .*nowhere to resume"):
        run.here("nowhere", run.train, resume=True)


def test_after_a_full_disk_the_run_can_be_resumed(
    run: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = iter(range(4))

    def save(*arguments: Any, **named: Any) -> None:
        if next(room, None) is None:
            raise OSError(ENOSPC, "No space left on device")
        save_file(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr("spandet.training.checkpoint.save_file", save)
        with pytest.raises(TrainingError, match=r"No space left on device; the one before it is"):
            run.here("full", run.train, run.dev)
    run.here("full", run.train, run.dev, resume=True)

    assert run.weights("full") == run.weights("done")


def test_labels_only_in_dev_are_reported_and_count_as_missed(
    run: Place, caplog: pytest.LogCaptureFixture
) -> None:
    entities = [Entity(WordSpan(1, 2), "stranger"), Entity(WordSpan(0, 1), "thing")]
    dev = [Document.from_rows([WordRow(["w1", "w2"], entities)])]
    with caplog.at_level(logging.WARNING, logger="spandet"):
        run.here("strange", run.train, dev)

    warning = "dev has 1 entities with labels that train lacks (stranger): they are misses"
    assert warning in caplog.text
    facts = run.facts("strange")
    assert facts["warnings"] == [warning]
    assert facts["dev"]["labels"]["stranger"]["recall"] == 0


def test_dev_may_have_entities_that_begin_inside_words(run: Place) -> None:
    dev = [Document("w1 w2", (Entity(spandet.CharSpan(0, 1), "thing"),))]
    run.here("cut", run.train, dev)

    assert run.facts("cut")["dev"]["micro"]["gold"] == 1


def test_without_dev_the_last_epoch_is_kept(place: Place) -> None:
    facts = place.facts("whole")

    assert facts["best_epoch"] == 3
    assert facts["dev"] is None
    assert "No dev data were given" in (place.folder / "whole" / "README.md").read_text()


def test_half_precision_needs_a_gpu(run: Place) -> None:
    if torch.accelerator.is_available():
        pytest.skip("there is one")
    with pytest.raises(ConfigError, match=r"\[training\] precision: fp16 needs a GPU"):
        run.here("half", run.train, overrides=["training.precision=fp16"])


def test_training_does_not_change_the_global_random_state(run: Place) -> None:
    torch.manual_seed(11)
    wanted = torch.rand(1)
    torch.manual_seed(11)
    run.here("rng", run.train, overrides=["training.epochs=1"])

    assert torch.equal(torch.rand(1), wanted)


def test_the_command_line_passes_all_options(run: Place) -> None:
    app = typer.Typer()
    app.command()(train_command)
    common = ["--train-from", "jsonl", "--dev-from", "jsonl", "--limit", "12"]
    changes = ["--set", "training.epochs=1", "--set", "training.lr=0.5"]
    arguments = run.command("cli", *common, *changes, dev=True)[1:]

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0, result.output
    facts = run.facts("cli")
    assert facts["data"]["train"]["sentences"] == 12
    assert facts["data"]["train"]["name"] == "train.jsonl (the first 12 sentences)"
    assert facts["identity"]["training"]["lr"] == 0.5
    assert len(facts["history"]) == 1

    wrong = CliRunner().invoke(app, [*arguments, "--set", "training.epoch=1"])
    assert isinstance(wrong.exception, ConfigError)
    assert "did you mean epochs?" in str(wrong.exception)
