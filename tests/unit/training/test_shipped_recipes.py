"""Every recipe that we ship can be read, names its own command, and survives being saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.config import read_toml
from spandet.detectors import DETECTORS
from spandet.training import Recipe

PROJECT = Path(__file__).parents[3]
RECIPES = sorted((PROJECT / "recipes").rglob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recipe_is_valid_and_says_how_to_run_it(path: Path) -> None:
    recipe = Recipe.load(path)
    first = path.read_text().splitlines()[0]
    assert first.startswith(f"# spandet train {path.relative_to(PROJECT)} --train ")
    assert Recipe.from_values(read_toml(recipe.to_toml(), name="saved")) == recipe


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_has_its_presets_and_a_demo(name: str) -> None:
    assert {"paper", "released-code"} <= set(DETECTORS[name].presets)
    values = {"encoder": {"hashed": {}}, "detector": {"name": name}}
    plain = Recipe.from_values(values)
    for preset in DETECTORS[name].presets:
        chosen = {**values, "detector": {"name": name, "preset": preset}}
        assert Recipe.from_values(chosen) != plain
    assert PROJECT / "recipes" / "demo" / f"{name}.toml" in RECIPES
