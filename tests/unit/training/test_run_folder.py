"""Identities of runs: which runs can be resumed, across versions too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spandet
from spandet.errors import SpandetError, UsageError
from spandet.pretraining import PretrainingSettings
from spandet.pretraining import run as pretraining_run
from spandet.training import Recipe, TrainingSettings
from spandet.training import run as training_run
from spandet.training.run_folder import check_identity, identity_of_finished


def test_differences_to_another_run_are_in_the_error() -> None:
    known = {"training": {"lr": 0.1, "epochs": 3}, "train data": "abc"}
    check_identity(known, known, settings_file="recipe.toml")
    other = {"training": {"lr": 0.2, "epochs": 3}, "train data": "abd"}

    with pytest.raises(
        UsageError,
        match=r"train data was abc, is abd; training\.lr was 0\.1, is 0\.2.*recipe\.toml",
    ):
        check_identity(known, other, settings_file="recipe.toml")


def recipe_values(**training: Any) -> dict[str, Any]:
    encoder = {"hashed": {"dim": 8, "rows": 32}, "fusion": {"dim": 8}}
    values = {"encoder": encoder, "detector": {"name": "biaffine"}, "training": training}
    return Recipe.from_values(values).to_values()


def test_a_run_of_an_older_version_can_be_resumed() -> None:
    """It had other names for some settings, and lacked others."""
    now = {**recipe_values(epochs=3, evaluation_steps=7), "train data": "abc", "dev data": None}
    old = {**now, "training": dict(now["training"])}
    old["training"]["look_steps"] = old["training"].pop("evaluation_steps")
    del old["training"]["short_first_epochs"]

    assert training_run._with_current_names(old, None) == now
    assert training_run._with_current_names(now, None) == now


def test_a_run_of_an_older_version_did_not_record_its_preset() -> None:
    values = {"encoder": {"hashed": {}}, "detector": {"name": "locate-and-label"}}
    now = Recipe.from_values(values).to_values()
    old = {**now, "detector": {k: v for k, v in now["detector"].items() if k != "preset"}}

    assert training_run._with_current_names(old, "paper") == now
    assert training_run._with_current_names(now, "tuned") == now


def test_a_pretraining_of_an_older_version_can_be_resumed() -> None:
    values = PretrainingSettings(steps=3, precision="fp32").model_dump(mode="json")
    now = {**values, "encoder weights": "ab", "texts": "cd"}
    old = {key: value for key, value in now.items() if key != "whole_words"}

    assert pretraining_run._with_current_names(old) == now
    assert pretraining_run._with_current_names(now) == now


def test_unreadable_settings_are_compared_literally() -> None:
    old = {**recipe_values(epochs=3), "train data": "abc"}
    old["training"] = {**old["training"], "gone": 1}

    assert training_run._with_current_names(old, None) == old
    assert pretraining_run._with_current_names({"gone": 1}) == {"gone": 1}


def test_old_names_of_training_settings_are_read() -> None:
    assert TrainingSettings.build({"look_steps": 5}, where="training").evaluation_steps == 5
    assert recipe_values(look_steps=5)["training"]["evaluation_steps"] == 5


def test_the_recipe_of_the_bundled_model_is_read() -> None:
    """It was written when a setting had another name."""
    path = Path(spandet.__file__).parent / "models/bio-en/recipe.toml"
    assert "look_steps" in path.read_text(encoding="utf-8")
    assert Recipe.load(path).training.evaluation_steps == 0


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"identity": 1}'])
def test_a_damaged_summary_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(SpandetError, match=r"run\.json"):
        identity_of_finished(tmp_path)
