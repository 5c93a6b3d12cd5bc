"""--flat: all interfaces pass it on; formats without overlaps require it before prediction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import spacy
from typer.testing import CliRunner, Result

from spandet.cli import app
from spandet.errors import UsageError
from spandet.formats import FORMATS
from spandet.inference.decoding import DecodingSettings
from spandet.inference.model_names import find_model, is_flat
from spandet.inference.options import PredictOptions
from spandet.inference.recognizer import Recognizer
from spandet.integrations.ray_engine import RayJob, _Work, _Worker
from spandet.integrations.spacy_component import SpandetComponent
from spandet.serving.schemas import EntitiesRequest
from spandet.serving.work import Finding
from spandet.text import Document

MODEL = "bio-en"


class RecordingRecognizer:
    """Finds no entities, and records the options of each call."""

    def __init__(self) -> None:
        self.decoding, self.recorded = DecodingSettings(), list[Any]()

    def predict(self, documents: Iterable[Document], options: PredictOptions) -> Iterator[Document]:
        self.recorded.append(options.flat)
        return iter(documents)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, words)])


@pytest.mark.parametrize("flat", [False, True])
def test_every_interface_passes_flat_to_the_recognizer(
    flat: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = RecordingRecognizer()
    recognizer = cast("Recognizer", recording)
    monkeypatch.setattr(Recognizer, "from_pretrained", lambda *_, **__: recognizer)
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    option = ["--flat"] if flat else []
    done = run(MODEL, tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", *option)
    assert done.exit_code == 0, done.output

    request = EntitiesRequest.model_validate({"text": "a", "flat": flat})
    Finding(request.options).run(recognizer, [Document("a")])

    nlp = spacy.blank("en")
    nlp.add_pipe("spandet", config={"model": "nowhere", "flat": flat})
    component = cast("SpandetComponent", nlp.get_pipe("spandet"))
    component.recognizer = recognizer
    nlp("a")

    worker = _Worker.__new__(_Worker)
    worker._recognizer, worker._work = recognizer, _Work("", "jsonl", RayJob(flat=flat))
    list(worker._predict([Document("a")]))
    assert len(recording.recorded) >= 4
    assert set(recording.recorded) == {flat}


def model_with(folder: Path, **decoding: Any) -> Path:
    config = json.loads((find_model(MODEL) / "config.json").read_text())
    config["decoding"] |= decoding
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


NARROW = [name for name, row in FORMATS.items() if row.write and row.layers is not None]


@pytest.mark.parametrize("name", NARROW)
def test_a_format_without_overlaps_is_refused_before_prediction(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    target = (tmp_path / "in.jsonl", "-o", tmp_path / "out.x", "--to", name)
    done = run(MODEL, *target)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{name} allows ")
    assert "give --flat for entities that do not overlap, or write jsonl" in str(done.exception)
    assert not (tmp_path / "out.x").exists()
    # Flat by an option, by a changed setting or by itself: then the manifest is missing.
    loose, flat = model_with(tmp_path / "loose"), model_with(tmp_path / "flat", flat=True)
    for words in ((loose, "--flat"), (loose, "--set", "decoding.flat=true"), (flat,)):
        done = run(words[0], *target, *words[1:])
        assert "manifest.json is missing" in str(done.exception)


def test_formats_with_layers_are_those_that_refuse_overlaps() -> None:
    assert set(NARROW) == {
        "conll",
        "conll-iob1",
        "conll-bioes",
        "conll-bmes",
        "docbin-ents",
        "germeval",
    }


def test_a_folder_that_is_not_a_model_is_an_error_with_its_path(tmp_path: Path) -> None:
    for text in ("", "[]"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(UsageError, match=r"config\.json is damaged"):
            is_flat(tmp_path)
