"""The same text gives the same entities through every interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import spandet
from spandet.text import Document
from support.command_line import succeeds
from support.local_ray import IGNORED, at_most, local_ray
from support.small_models import DETECTORS, small_export, small_model, small_texts

Entities = list[dict[str, Any]]
Interface = Callable[[Path, list[str], Path], list[Entities]]

TEXTS = [
    *small_texts(6),
    " ".join(small_texts(4, seed=5)) + "\n\nAnd a last line, without a stop",
    "",
    " \n ",
    "x",
    "naïve café 😀 (\u05e9\u05dc\u05d5\u05dd) e\u0301t\u00e9\tof\r\nHalburn",
]
SCORE_BOUND = 1e-4


@lru_cache
def recognizer(model: Path) -> spandet.Recognizer:
    return spandet.Recognizer.from_pretrained(model)


def plain(documents: list[Document]) -> list[Entities]:
    return [document.to_dict()["entities"] for document in documents]


def one_by_one(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    return plain([recognizer(model)(text) for text in texts])


def as_a_stream(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    return plain(list(recognizer(model).predict(texts)))


def on_the_command_line(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    given, found = folder / "given.jsonl", folder / "found.jsonl"
    spandet.write([Document(text) for text in texts], given)
    succeeds("predict", model, given, "-o", found)
    return plain(list(spandet.read(found)))


def in_spacy(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("spandet", config={"model": str(model)})
    return [doc._.spandet["spandet"] for doc in nlp.pipe(texts)]


def over_http(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    testing = pytest.importorskip("fastapi.testclient", reason="needs the extra serve")
    serving = pytest.importorskip("spandet.serving.app", reason="needs the extra serve")
    with testing.TestClient(serving.create_app(recognizer(model))) as client:
        answer = client.post("/v1/entities", json={"texts": texts})
    assert answer.status_code == 200, answer.text
    return [document["entities"] for document in answer.json()["documents"]]


def on_ray(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    with at_most(400):
        local_ray()
        engine = pytest.importorskip("spandet.integrations.ray_engine")
        given = folder / "given.jsonl"
        spandet.write([Document(text) for text in texts], given)
        job = engine.RayJob(shard_bytes=700, workers=1)
        engine.run_ray(model, [str(given)], str(folder / "found"), job)
    return plain(list(spandet.read(folder / "found", "jsonl")))


def in_onnx(model: Path, texts: list[str], folder: Path) -> list[Entities]:
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    return as_a_stream(small_export(model.name), texts, folder)


INTERFACES: dict[str, Interface] = {
    "stream": as_a_stream,
    "command line": on_the_command_line,
    "spaCy": in_spacy,
    "HTTP": over_http,
    "Ray": on_ray,
    "ONNX": in_onnx,
}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("interface", INTERFACES)
@IGNORED
def test_the_same_text_gives_the_same_entities(
    detector: str, interface: str, tmp_path: Path
) -> None:
    model = small_model(detector)
    wanted = one_by_one(model, TEXTS, tmp_path)
    assert sum(map(len, wanted)) > len(TEXTS)
    found = INTERFACES[interface](model, TEXTS, tmp_path)
    assert len(found) == len(wanted)
    for text, ours, theirs in zip(TEXTS, map(ordered, wanted), map(ordered, found), strict=True):
        assert [key(entity) for entity in theirs] == [key(entity) for entity in ours], text
        for one, other in zip(ours, theirs, strict=True):
            assert other["score"] == pytest.approx(one["score"], abs=SCORE_BOUND)
            assert text[one["start"] : one["end"]] == one["text"]


def key(entity: dict[str, Any]) -> tuple[Any, ...]:
    pieces = entity.get("fragments", [[entity["start"], entity["end"]]])
    return entity["start"], entity["end"], entity["label"], pieces


def ordered(entities: Entities) -> Entities:
    return sorted(entities, key=key)
