"""Discontinuous entities: learnt with a linker; without them a linker changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet import Recognizer, evaluate, generate, read, write
from spandet.cli import app
from spandet.inference.decoding import DecodingSettings
from spandet.text import Document
from spandet.training import train

RECIPE = Path(__file__).parents[2] / "recipes" / "demo" / "boundary-diffusion.toml"
LINKED = "detector.fragments=true"
BY_HEART = ["encoder.hashed.dropout=0", "encoder.characters.dropout=0", "detector.dropout=0"]
SEEN = list(generate(60, seed=1, domain="clinic"))
UNSEEN = list(generate(200, seed=2, domain="clinic"))


def learnt(out: Path, documents: list[Document], *overrides: str) -> Recognizer:
    return train(RECIPE, documents, out=out, overrides=overrides, progress=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clinic") / "model"
    learnt(folder, SEEN, LINKED, "training.epochs=40", *BY_HEART)
    return folder


def with_gaps(documents: Iterable[Document]) -> list[Document]:
    """Only the discontinuous entities."""
    return [replace(d, entities=tuple(e for e in d.entities if e.fragments)) for d in documents]


def f1_of_gaps(recognizer: Recognizer, documents: list[Document]) -> float:
    predicted = recognizer.predict(documents)
    return evaluate(with_gaps(documents), with_gaps(predicted), resamples=0).micro.f1


def predicted_all(recognizer: Recognizer, documents: list[Document]) -> list[Document]:
    """All entities, with any score."""
    recognizer.decoding = DecodingSettings(threshold=0.0, min_odds=0.0)
    return list(recognizer.predict(documents))


def test_discontinuous_entities_are_learnt(model: Path) -> None:
    recognizer = Recognizer.from_pretrained(model)
    assert f1_of_gaps(recognizer, SEEN) >= 0.9
    assert f1_of_gaps(recognizer, UNSEEN) >= 0.6


def test_without_a_linker_no_discontinuous_entity_is_found(tmp_path: Path) -> None:
    recognizer = learnt(tmp_path / "run", SEEN, "training.epochs=2")
    predicted = predicted_all(recognizer, UNSEEN)
    assert any(document.entities for document in predicted)
    assert not any(document.entities for document in with_gaps(predicted))


def test_on_contiguous_data_a_linker_changes_nothing(tmp_path: Path) -> None:
    """Weights, entities and scores are exactly equal."""
    documents = list(generate(24, seed=3))
    few = ["training.epochs=3", "training.batch_sentences=4"]
    without = learnt(tmp_path / "without", documents, *few)
    linked = learnt(tmp_path / "with", documents, *few, LINKED)
    weights = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("with", "without")]
    assert weights[0] == weights[1]
    found = predicted_all(without, documents)
    assert any(document.entities for document in found)
    assert predicted_all(linked, documents) == found


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_command_supports_discontinuous_entities(model: Path, tmp_path: Path) -> None:
    gold, found = tmp_path / "gold.jsonl", tmp_path / "found.jsonl"
    write(SEEN, gold)
    run("predict", model, gold, "-o", found)
    predicted = list(read(found))
    assert predicted == list(Recognizer.from_pretrained(model).predict(SEEN))
    run("convert", found, tmp_path / "brat", "--to", "brat")
    pieces = [[e.spans for e in d.entities] for d in read(tmp_path / "brat")]
    assert sorted(pieces) == sorted([e.spans for e in d.entities] for d in predicted)

    report = json.loads(run("evaluate", gold, found, "--json"))
    assert report["micro"]["f1"] >= 0.9
    assert "└──┘···········└─✓symptom" in run("view", gold, found)  # left and right …

    traced = map(json.loads, run("trace", model, "-i", gold, "--json").splitlines())
    entities = [e for d in traced for sentence in d["sentences"] for e in sentence["found"]]
    linked = [entity for entity in entities if "fragments" in entity]
    assert len(linked) == sum(len(d.entities) for d in with_gaps(predicted)) > 20
    assert all(len(entity["more"]) == len(entity["fragments"]) - 1 for entity in linked)
    assert "    fragment (" in run("trace", model, "-i", gold, "--limit", "3")
