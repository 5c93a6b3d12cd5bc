"""Files for TensorBoard, read back with its own reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from spandet.training import train
from spandet.training.log import LOG
from spandet.training.recipe import Recipe
from spandet.training.run_folder import RunFolder
from support.training_toys import documents

RECIPE = {
    "encoder": {"hashed": {"dim": 8, "rows": 32}, "fusion": {"dim": 8}},
    "detector": {"name": "locate-and-label", "lengths": [1, 2]},
    "training": {"epochs": 2, "batch_sentences": 4, "log_steps": 1, "checkpoint_minutes": 0},
}


def run(folder: Path, *, resume: bool = False) -> None:
    recipe = Recipe.from_values(RECIPE).changed(["training.tensorboard=true"])
    train(recipe, documents(16), documents(4, start=16), out=folder, resume=resume, progress=False)


Scalars = dict[str, list[tuple[int, float]]]


def read_back(folder: Path) -> Scalars:
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
        if not name.endswith(("seconds", "sentences_per_second"))
    }


def in_the_log(folder: Path) -> Scalars:
    found: Scalars = {}
    for line in map(json.loads, (folder / LOG).read_text().splitlines()):
        for key, value in _flat(line, line["kind"]):
            if not key.endswith(("/kind", "/step", "seconds", "sentences_per_second")):
                found.setdefault(key, []).append((line["step"], value))
    return found


def _flat(values: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{prefix}/{key}"
        pairs += _flat(value, name) if isinstance(value, dict) else [(name, value)]
    return pairs


def test_every_number_of_the_log_can_be_read_back(tmp_path: Path) -> None:
    run(tmp_path)

    written, logged = read_back(tmp_path), in_the_log(tmp_path)
    assert {"step/losses/label", "epoch/dev/f1", "epoch/dev/f1_untuned"} <= written.keys()
    assert [step for step, _ in written["step/losses/label"]] == list(range(1, 9))
    assert written.keys() == logged.keys()
    for name, points in logged.items():
        steps, values = zip(*points, strict=True)
        assert [step for step, _ in written[name]] == list(steps)
        assert [value for _, value in written[name]] == pytest.approx(list(values), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("writes", [0, 2, 4, 6])
def test_a_resumed_run_has_each_value_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Even if the run crashed while writing a checkpoint; the fifth is at the end of an epoch."""
    run(tmp_path / "whole")
    checkpoint = RunFolder.checkpoint
    left = iter(range(writes))

    def crash(folder: RunFolder, state: Any) -> None:
        if next(left, None) is None:
            raise KeyError
        checkpoint(folder, state)

    with monkeypatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(RunFolder, "checkpoint", crash)
        run(tmp_path / "stopped")
    run(tmp_path / "stopped", resume=True)

    assert read_back(tmp_path / "stopped") == read_back(tmp_path / "whole")
