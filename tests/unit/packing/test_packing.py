"""Packing: a smaller model with nearly the same F1, or an error and no model."""

from __future__ import annotations

import json
import string
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spandet.errors import UsageError
from spandet.inference.model_names import listed
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.weights import Kept
from spandet.packing import PackError, PackOptions, pack
from spandet.packing.run import pieces_in
from spandet.text import Document
from support.small_models import small_documents, small_model
from support.tiny_bert import save_tiny_bert

CARD = "# A model\n\nFor tests.\n\n## Training\n\nNone. [Report](report.html).\n"
SECTIONS = {
    "detector": {"name": "locate-and-label", "use_filter": False},
    "decoding": {"threshold": 0.05},
}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """As the model of these tests finds them, so that its own F1 is 100."""
    return small_documents(12)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("models")
    counts = Counter(word.lower() for d in documents for s in d.sentences for word in s.words)
    characters = string.ascii_lowercase + string.digits + string.punctuation
    words = [word for word, _ in counts.most_common() if len(word) > 1]
    pieces = dict.fromkeys([*characters, *(f"##{one}" for one in characters), *words, "unheard"])
    bert = save_tiny_bert(folder / "bert", pieces)
    encoder = {"transformer": {"name": str(bert)}, "fusion": {"kind": "none"}}
    settings = ModelSettings.resolve({**SECTIONS, "encoder": encoder})
    Recognizer.build(settings, documents).save_pretrained(folder / "model")
    (folder / "model" / "README.md").write_text(CARD)
    return folder / "model"


@pytest.fixture(scope="module")
def gold(model: Path, documents: list[Document]) -> list[Document]:
    found = list(Recognizer.from_pretrained(model).predict(documents))
    assert any(document.entities for document in found)
    return found


def texts(documents: list[Document]) -> list[str]:
    return [document.text for document in documents]


def test_text_with_kept_pieces_is_read_exactly_as_before(
    model: Path, gold: list[Document], tmp_path: Path
) -> None:
    options = PackOptions(weights="float32", max_loss=0)
    report = pack(model, tmp_path / "a", data={"dev": gold}, corpus=gold, options=options)
    assert report.pieces is not None
    assert report.parent_pieces is not None
    assert report.pieces < report.parent_pieces
    assert report.bytes < report.parent_bytes
    packed = Recognizer.from_pretrained(tmp_path / "a")
    assert list(packed.predict(texts(gold))) == list(
        Recognizer.from_pretrained(model).predict(texts(gold))
    )


def test_other_text_can_still_be_read(model: Path, gold: list[Document], tmp_path: Path) -> None:
    corpus = [Document("a")]
    options = PackOptions(weights="float32", max_loss=100)
    pack(model, tmp_path / "a", data={"dev": gold}, corpus=corpus, options=options)
    packed, parent = (Recognizer.from_pretrained(each) for each in (tmp_path / "a", model))
    unknown = pieces_in([Document("漢")], packed) - pieces_in([Document("a")], packed)
    for document in gold:
        assert not pieces_in([document], packed) & unknown
        assert len(pieces_in([document], parent)) != len(pieces_in([document], packed))
    assert next(packed.predict(["Unheard of: [SEP] 漢 \ud800"])).text


def test_a_model_that_loses_too_much_f1_is_not_written(
    model: Path, gold: list[Document], tmp_path: Path
) -> None:
    with pytest.raises(PackError, match=r"loses \d+\.\d\d points of F1 on dev; allowed are 0\.5"):
        pack(model, tmp_path / "a", data={"dev": gold}, corpus=[Document("a")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weights", ["half", "int8"])
def test_quantised_weights_are_loaded_and_saved_in_full(
    weights: Kept, model: Path, gold: list[Document], tmp_path: Path
) -> None:
    options = PackOptions(weights=weights, max_loss=10)
    report = pack(model, tmp_path / "a", data={"dev": gold}, options=options)
    assert report.pieces == report.parent_pieces
    assert report.scores[0].parent_f1 == 1.0
    packed = Recognizer.from_pretrained(tmp_path / "a")
    packed.save_pretrained(tmp_path / "b")
    again = Recognizer.from_pretrained(tmp_path / "b")
    assert list(again.predict(gold)) == list(packed.predict(gold))


def test_a_model_without_a_transformer_is_packed_too(tmp_path: Path) -> None:
    model, documents = small_model("locate-and-label"), small_documents()
    report = pack(model, tmp_path / "a", data={"dev": documents}, options=PackOptions(max_loss=1))
    assert report.pieces is None
    assert report.bytes < 0.4 * report.parent_bytes
    with pytest.raises(UsageError, match="no transformer, so there is no vocabulary"):
        pack(model, tmp_path / "b", data={"dev": documents}, corpus=documents)


def test_card_and_json_have_the_scores(model: Path, gold: list[Document], tmp_path: Path) -> None:
    options = PackOptions(max_loss=100, about="# Ours\n\nWhat it is for.\n")
    report = pack(model, tmp_path / "a", data={"dev": gold, "more": gold[:3]}, options=options)
    card = (tmp_path / "a" / "README.md").read_text()
    assert card.startswith("# Ours\n\nWhat it is for.\n\n## Packed (int8 weights): ")
    assert card.endswith("all its dev data together.\n\n## Training\n\nNone.\n")  # no dead link
    assert f"{100 * report.scores[1].f1:.2f}" in card
    assert json.loads((tmp_path / "a" / "pack.json").read_text())["scores"][1]["data"] == "more"
    assert listed(tmp_path / "a").dev_f1 == report.scores[0].f1


def test_labelled_data_are_needed(model: Path, documents: list[Document], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs labelled data to measure F1 on"):
        pack(model, tmp_path / "a", data={})
    bare = [replace(document, entities=()) for document in documents]
    with pytest.raises(UsageError, match="the data bare have no entities"):
        pack(model, tmp_path / "a", data={"bare": bare})
