"""Each detector overfits a small corpus; regression finds entities longer than every seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spandet import evaluate, generate
from spandet.text import Document
from spandet.training import train

RECIPES = Path(__file__).parents[2] / "recipes" / "demo"
DETECTORS = sorted(path.stem for path in RECIPES.glob("*.toml"))


def learnable(sentences: int, seed: int) -> list[Document]:
    """Documents without a second label on a span: a detector gives every span one label."""
    documents = []
    for document in generate(sentences, seed=seed):
        first = {entity.span: entity for entity in reversed(document.entities)}
        documents.append(replace(document, entities=tuple(first.values())))
    return documents


@pytest.mark.parametrize("detector", DETECTORS)
def test_twenty_nested_sentences_are_overfitted(detector: str, tmp_path: Path) -> None:
    documents = learnable(20, seed=4)
    assert sum(len(document.sentences) for document in documents) == 20
    recipe = RECIPES / f"{detector}.toml"
    overrides = [
        "encoder.hashed.dropout=0",
        "encoder.characters.dropout=0",
        "detector.dropout=0",
        "training.epochs=60",
        "training.batch_sentences=4",
    ]
    recognizer = train(
        recipe, documents, documents, out=tmp_path / "run", overrides=overrides, progress=False
    )
    assert evaluate(documents, recognizer.predict(documents)).micro.f1 == 1.0


def long_share(documents: list[Document], predicted: list[Document], longer_than: int) -> float:
    """Share of the entities with more words than `longer_than` that were found."""
    found = total = 0
    for gold, guess in zip(documents, predicted, strict=True):
        right = {(entity.span, entity.label) for entity in guess.entities}
        for sentence, entities in zip(gold.sentences, gold.entities_in_words()[0], strict=True):
            for entity in entities:
                if len(entity.span) > longer_than:
                    total += 1
                    found += (sentence.chars_of(entity.span), entity.label) in right
    assert total > 10
    return found / total


@pytest.mark.parametrize(("regressor", "reach"), [("true", (0.5, 1.0)), ("false", (0.0, 0.0))])
def test_only_the_regressor_reaches_entities_longer_than_every_seed(
    regressor: str, reach: tuple[float, float], tmp_path: Path
) -> None:
    documents = learnable(150, seed=8)
    overrides = [
        "detector.lengths=[1, 2, 3]",
        f"detector.use_regressor={regressor}",
        "training.epochs=20",
    ]
    recipe = RECIPES / "locate-and-label.toml"
    recognizer = train(recipe, documents, out=tmp_path / "run", overrides=overrides, progress=False)
    share = long_share(documents, list(recognizer.predict(documents)), longer_than=3)
    # Clipped at the end of a sentence, no seed is longer than three words either.
    assert reach[0] <= share <= reach[1]
