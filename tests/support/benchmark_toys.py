"""A small trained model in a folder, for tests of benchmarks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from spandet.formats import write
from spandet.generation import Domain, generate
from spandet.text import Document
from spandet.training import Recipe, train

VALUES = {
    "encoder": {"hashed": {}, "fusion": {"dim": 32}},
    "detector": {
        "name": "boundary-diffusion",
        "preset": "tuned",
        "dim": 16,
        "heads": 2,
        "layers": 1,
        "draws": 2,
    },
    "training": {"epochs": 3, "batch_sentences": 4, "lr": 0.02},
}
RECIPE = Recipe.from_values(VALUES)


def documents(sentences: int, *, seed: int) -> list[Document]:
    return list(generate(sentences, seed=seed, domain=Domain.NEWS))


@cache
def toy_folder(parent: Path) -> Path:
    """Make a folder with a trained model, dev data and a recipe, once.

    Some predictions of the model are correct.
    """
    place = parent / "benchmark-toys"
    place.mkdir()
    data = documents(40, seed=1), documents(10, seed=2)
    train(RECIPE, *data, out=place / "model", progress=False)
    write(documents(30, seed=3), str(place / "dev.jsonl"))
    (place / "toy.toml").write_text(RECIPE.to_toml())
    return place
