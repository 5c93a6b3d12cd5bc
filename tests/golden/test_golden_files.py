"""Golden files: one sample per written format, and the scores of fixed predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spandet import generate, read, write
from spandet.evaluation import compare, describe, evaluate
from spandet.formats import FORMATS
from spandet.text import CharSpan, Document, Entity

Golden = Callable[[str, str], None]

FLAT = {"conll", "conll-iob1", "conll-bioes", "conll-bmes"}
BINARY = {"docbin", "docbin-ents"}
TWO_LAYERS = {"germeval"}
TEXT_FORMATS = [
    name for name, row in FORMATS.items() if row.write is not None and name not in BINARY
]


def layered(document: Document, most: int) -> Document:
    """The document with at most `most` overlapping entities, and no span twice."""
    kept: list[Entity[CharSpan]] = []
    for entity in sorted(document.entities, key=lambda e: (e.span.start, -e.span.end, e.label)):
        around = [other for other in kept if other.span.overlaps(entity.span)]
        if len(around) < most and all(other.span != entity.span for other in around):
            kept.append(entity)
    return replace(document, entities=tuple(kept))


def sample(name: str) -> list[Document]:
    documents = generate(14, seed=5)
    most = 1 if name in FLAT else 2 if name in TWO_LAYERS else 9
    return [layered(document, most) for document in documents]


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_written_formats_are_unchanged(name: str, golden: Golden, tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(sample(name), path, name)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    golden(f"{name}.txt", "".join(file.read_bytes().decode() for file in files))
    back = list(read(path, name))
    assert sum(len(d.entities) for d in back) == sum(len(d.entities) for d in sample(name))


def flawed(documents: list[Document], every: int) -> Iterator[Document]:
    """Add errors of each kind at fixed intervals: missed, wrong label, wrong end, spurious."""
    number = 0
    for document in documents:
        entities = []
        for entity in document.entities:
            number += 1
            match number % every:
                case 0:
                    continue
                case 1:
                    entities.append(Entity(entity.span, "wrong"))
                case 2:
                    end = min(entity.span.end + 4, len(document.text))
                    entities.append(Entity(CharSpan(entity.span.start, end), entity.label))
                case 3:
                    entities.append(entity)
                    entities.append(Entity(CharSpan(0, entity.span.end), "invented"))
                case _:
                    entities.append(entity)
        yield replace(document, entities=tuple(entities))


def test_scores_of_fixed_predictions(golden: Golden) -> None:
    gold = list(generate(120, seed=6))
    first, second = list(flawed(gold, 9)), list(flawed(gold, 11))
    golden("scores.json", json.dumps(evaluate(gold, first).to_json(), indent=1) + "\n")
    golden("scores.md", evaluate(gold, first).to_markdown() + "\n")
    golden("comparison.json", json.dumps(compare(gold, first, second).to_json(), indent=1) + "\n")
    golden("statistics.json", json.dumps(describe(gold).to_json(), indent=1) + "\n")
