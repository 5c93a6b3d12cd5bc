"""Small trained models, one per detector, for tests of everything that uses a model.

They are trained on generated sentences with the embedded encoder: seconds each, once for all
processes. They find entities, including nested ones, with different scores.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from spandet import detectors, generate
from spandet.text import Document
from spandet.training import train
from support.made_once import PROJECT, made_once

RECIPES = PROJECT / "recipes" / "demo"
DETECTORS = tuple(detectors.DETECTORS)
SENTENCES = 60

_CHANGES = (
    "encoder.hashed.dropout=0",
    "encoder.characters.dropout=0",
    "detector.dropout=0",
    "training.epochs=12",
    "training.batch_sentences=4",
)
_SMALLER = ("encoder.characters.dim=32", "encoder.fusion.dim=64")


def small_documents(sentences: int = SENTENCES, *, seed: int = 11) -> list[Document]:
    """Generated documents with one label per span; the defaults give the training data."""
    documents = []
    for document in generate(sentences, seed=seed):
        first = {entity.span: entity for entity in reversed(document.entities)}
        documents.append(replace(document, entities=tuple(first.values())))
    return documents


def small_texts(count: int, *, seed: int = 11) -> list[str]:
    """The raw text of generated documents."""
    return [document.text for document in small_documents(12 * count, seed=seed)][:count]


@cache
def small_model(detector: str) -> Path:
    """The folder of a model with this detector. Read-only: all tests share it."""

    def learn(folder: Path) -> None:
        recipe, documents = RECIPES / f"{detector}.toml", small_documents()
        smaller = () if detector == "locate-and-label" else _SMALLER
        changes = (*_CHANGES, *smaller)
        train(recipe, documents, documents, out=folder, overrides=changes, progress=False)

    return made_once(detector, learn)


@cache
def small_export(detector: str) -> Path:
    """The folder of the same model as ONNX graphs. Read-only: all tests share it."""

    def make(folder: Path) -> None:
        from spandet.onnx_export import export  # noqa: PLC0415 (an extra)

        export(small_model(detector), folder, data=small_documents(20, seed=5))

    return made_once(f"{detector}-onnx", make)
