"""Every shipped recipe is valid, begins with its command, and can be saved and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.config import read_toml
from spandet.detectors import DETECTORS
from spandet.training import Recipe

PROJECT = Path(__file__).parents[3]
LISTS = PROJECT / "recipes" / "ablations"
RECIPES = sorted(p for p in (PROJECT / "recipes").rglob("*.toml") if p.parent != LISTS)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recipe_is_valid_and_begins_with_its_command(path: Path) -> None:
    recipe = Recipe.load(path)
    first = path.read_text().splitlines()[0]
    assert first.startswith(f"# spandet train {path.relative_to(PROJECT)} --train ")
    assert Recipe.from_values(read_toml(recipe.to_toml(), name="saved")) == recipe


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_has_its_presets_and_a_demo(name: str) -> None:
    published = {"paper", "released-code"} if name != "span-jury" else set()
    row = DETECTORS[name]
    assert published <= set(row.presets) <= published | {"tuned"}
    values = {"encoder": {"hashed": {}}, "detector": {"name": name}}
    plain = Recipe.from_values(values)
    assert plain.preset == row.default_preset
    recipes = {
        preset: Recipe.from_values({**values, "detector": {"name": name, "preset": preset}})
        for preset in row.presets
    }
    for preset, recipe in recipes.items():
        assert recipe.overrides == []
        assert (recipe == plain) == (preset == row.default_preset)
    assert PROJECT / "recipes" / "demo" / f"{name}.toml" in RECIPES


CORPORA = ["ace04", "ace05", "conll03", "genia", "kbp17", "msra", "ontonotes", "weibo"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_proposer_regressor_recipes_have_the_settings_of_the_paper(corpus: str) -> None:
    recipe = Recipe.load(PROJECT / "recipes" / corpus / "proposer-regressor.toml")
    row = DETECTORS["proposer-regressor"]
    chinese = corpus in {"weibo", "msra"}
    wanted = {**row.presets["paper"]["detector"], "kernels": (2, 2, 2) if chinese else (2, 2)}
    wanted["preset"] = "paper"
    assert recipe.model.detector == row.settings.build(wanted, where="detector")
    assert recipe.model.decoding.model_dump().items() >= row.presets["paper"]["decoding"].items()
    encoder, training = recipe.model.encoder, recipe.training
    assert encoder.fusion.kind == "bigru"
    assert encoder.fusion.norm
    assert (encoder.characters is None) == (encoder.tags is None) == chinese
    assert (training.epochs, training.batch_sentences, training.schedule) == (5, 4, "cosine")
    assert training.lr == training.encoder_lr == 2e-5
    if encoder.characters is not None:
        assert (encoder.characters.cell, encoder.characters.end_sign) == ("gru", False)


@pytest.mark.parametrize("tagged", [False, True])
def test_the_papers_proposer_regressor_for_a_cpu(tagged: bool) -> None:
    """The method of the paper except for its encoder, word vectors and learning rates."""
    name = f"proposer-regressor-paper{'-tagged' * tagged}-minilm.toml"
    small = Recipe.load(PROJECT / "recipes" / "genia" / name)
    paper = Recipe.load(PROJECT / "recipes" / "genia" / "proposer-regressor.toml")
    assert small.model.detector == paper.model.detector
    assert small.model.decoding == paper.model.decoding
    encoder, published = small.model.encoder, paper.model.encoder
    assert encoder.characters == published.characters
    assert encoder.tags == (published.tags if tagged else None)
    parts = 384 + 100 + 50 * tagged
    assert encoder.fusion == published.fusion.model_copy(update={"recurrent_dim": 2 * parts})
    assert small.training.schedule == paper.training.schedule


def test_proposer_regressor_recipes_have_the_settings_of_the_released_code() -> None:
    recipe = Recipe.load(PROJECT / "recipes" / "genia" / "proposer-regressor-released-code.toml")
    row = DETECTORS["proposer-regressor"]
    wanted = {**row.presets["released-code"]["detector"], "preset": "released-code"}
    assert recipe.model.detector == row.settings.build(wanted, where="detector")
    assert recipe.training.schedule == "linear"
    assert recipe.training.bias_correction  # its optimizer is PyTorch's AdamW


def test_ablations_of_layers_and_heads_use_the_kernels_of_the_paper() -> None:
    text = (LISTS / "proposer-regressor-sizes.toml").read_text("utf-8")
    for variant in read_toml(text, name="sizes")["variants"]:
        if any("layers=" in own or "heads=" in own for own in variant.get("set", [])):
            assert "detector.kernels=[2, 3]" in variant["set"], variant["name"]
