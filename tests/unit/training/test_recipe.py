from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.errors import ConfigError, UsageError
from spandet.training.recipe import Recipe, _table

TEXT = """
[encoder.hashed]
dim = 16

[detector]
name = "locate-and-label"
preset = "released-code"

[training]
epochs = 3
"""
RECIPES = Path(__file__).parents[3] / "recipes"
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(TEXT)
    return path


def test_defaults_presets_and_assignments_are_filled_in(path: Path) -> None:
    recipe = Recipe.load(path, ["training.epochs=5", "detector.focal=1.5", "training.lr=1e-3"])
    values = recipe.to_values()

    assert (recipe.training.epochs, recipe.training.lr, recipe.training.clip) == (5, 1e-3, 1.0)
    assert values["detector"]["focal"] == 1.5
    assert values["detector"]["label_loss"] == "focal"  # the preset's
    assert values["decoding"]["threshold"] == 0.45  # the preset's too
    assert values["detector"]["preset"] == recipe.preset == "released-code"


def test_the_default_preset_of_a_published_method_is_paper() -> None:
    values: dict[str, Any] = {
        "encoder": {"transformer": {"name": "minilm"}},
        "detector": {"name": "locate-and-label"},
    }
    recipe = Recipe.from_values(values)
    assert recipe.preset == "paper"
    assert recipe == Recipe.from_values(
        {**values, "detector": {**values["detector"], "preset": "paper"}}
    )
    assert recipe.model.encoder.transformer is not None
    assert recipe.model.encoder.transformer.neighbour_sentences == 1
    assert recipe.training.lr == 3e-5
    assert recipe.preset_line() == "locate-and-label, preset paper"


def test_values_that_differ_from_the_preset_are_listed() -> None:
    recipe = Recipe.from_values(
        {
            "encoder": {"transformer": {"name": "minilm", "pooling": "mean"}},
            "detector": {"name": "locate-and-label", "dropout": 0.25, "focal": 2.0},
            "decoding": {"nms_decay": 0.9},
            "training": {"epochs": 4, "seed": 7},
        }
    )
    assert [str(change) for change in recipe.overrides] == [
        "detector.dropout = 0.25 (preset: 0.5)",
        'encoder.transformer.pooling = "mean" (preset: "max")',
        "training.epochs = 4 (preset: 35)",
    ]
    assert recipe.preset_line().startswith("locate-and-label, preset paper, with detector.dropout")
    assert Recipe.from_values(recipe.to_values()).overrides == recipe.overrides


def test_a_detector_without_presets_has_no_overrides() -> None:
    recipe = Recipe.from_values({"encoder": {"hashed": {}}, "detector": {"name": "span-jury"}})
    assert (recipe.preset, recipe.overrides) == (None, [])


def test_a_preset_may_set_training_options() -> None:
    detector = {"name": "boundary-diffusion", "preset": "released-code"}
    values: dict[str, Any] = {"encoder": {"hashed": {}}, "detector": detector}
    recipe = Recipe.from_values(values)
    assert not recipe.training.bias_correction
    assert recipe.training.first_stage_scale == 2
    assert Recipe.from_values(recipe.to_values()) == recipe
    own = Recipe.from_values({**values, "training": {"bias_correction": True}})
    assert own.training.bias_correction
    plain = Recipe.from_values({**values, "detector": {"name": "boundary-diffusion"}})
    assert plain.training.bias_correction
    assert plain.training.first_stage_scale == 0


def test_recipe_round_trip(path: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(path)
    again = tmp_path / "again.toml"
    again.write_text(recipe.to_toml())

    assert Recipe.load(again) == recipe
    assert recipe.changed(["training.seed=7"]).training.seed == 7


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_toml_round_trip(values: dict[str, Any]) -> None:
    assert tomllib.loads(_table("section", values)) == {"section": values}


def test_none_is_left_out() -> None:
    assert tomllib.loads(_table("section", {"a": None, "b": 1})) == {"section": {"b": 1}}


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("training.epoch=3", r"\[training\] has no setting epoch; did you mean epochs\?"),
        ("training.epochs=0", r"\[training\] epochs: .*greater than or equal to 1, got 0"),
        ("training.schedule=square", r"\[training\] schedule: .*'linear', 'cosine' or 'constant'"),
        ("training.betas=[0.9, 1.5]", r"betas must be at least 0 and below 1, got \[0\.9, 1\.5\]"),
        ("trainin.epochs=3", r"no section \[trainin\]; did you mean training\?"),
        ("something.x=3", r"no section \[something\]; there are encoder, detector, decoding, tr"),
        ("detector.name=unknown", r"\[detector\] name is 'unknown', expected one of locate-and-la"),
        ("training=3", r"training must be a section of a recipe, got 3"),
    ],
)
def test_mistakes_are_errors_with_their_names(path: Path, assignment: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Recipe.load(path, [assignment])


@pytest.mark.parametrize(
    "path",
    sorted(set(RECIPES.rglob("*.toml")) - set(RECIPES.glob("ablations/*"))),
    ids=lambda path: path.stem,
)
def test_shipped_recipes_are_valid(path: Path) -> None:
    command = path.read_text().splitlines()[0]

    assert command.startswith(f"# spandet train {path.relative_to(RECIPES.parent)} --train ")
    Recipe.load(path)


def test_files_that_are_not_recipes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*nowhere\.toml: No such file"):
        Recipe.load(tmp_path / "nowhere.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"bad\.toml is not UTF-8 text"):
        Recipe.load(bad)
    bad.write_text("a = ")
    with pytest.raises(ConfigError, match=r"bad\.toml: Invalid value"):
        Recipe.load(bad)
