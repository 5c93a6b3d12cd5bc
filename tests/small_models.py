"""Small trained models, one per detector, for tests of everything that uses a model.

They have learnt generated sentences on the embedded encoder: seconds each, once per process. What
they find is no matter, but they do find entities, nested ones too, and not with one score.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from spandet import detectors, generate
from spandet.text import Document
from spandet.training import train

RECIPES = Path(__file__).parents[1] / "recipes" / "demo"
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
    """Generated documents with one label per span; `SENTENCES` of seed 11 is what was learnt."""
    documents = []
    for document in generate(sentences, seed=seed):
        first = {entity.span: entity for entity in reversed(document.entities)}
        documents.append(replace(document, entities=tuple(first.values())))
    return documents


def small_texts(count: int, *, seed: int = 11) -> list[str]:
    """The raw text of generated documents."""
    return [document.text for document in small_documents(12 * count, seed=seed)][:count]


@lru_cache
def small_model(detector: str) -> Path:
    """The folder of a model with this detector. Do not write into it: others read it too."""
    folder = Path(tempfile.mkdtemp(prefix="spandet-small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    recipe, documents = RECIPES / f"{detector}.toml", small_documents()
    out = folder / detector
    smaller = () if detector == "locate-and-label" else _SMALLER
    changes = (*_CHANGES, *smaller)
    train(recipe, documents, documents, out=out, overrides=changes, progress=False)
    return out
