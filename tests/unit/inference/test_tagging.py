"""Tags for models that use them: computed by spaCy or a custom tagger, otherwise an error."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spandet.encoding import Example
from spandet.errors import UsageError
from spandet.inference import tagging
from spandet.inference.engine import TorchEngine
from spandet.inference.long_sentences import LongSentences
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.tagging import tagger_for
from spandet.inference.tuning import tune
from spandet.tensors import SpanPredictions
from spandet.text import Document, Entity, WordRow, WordSpan

UNIVERSAL = ("NOUN", "PROPN", "VERB")
PENN = ("NN", "NNP", "VBD")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    tagging._spacy_tagger.cache_clear()
    yield
    tagging._spacy_tagger.cache_clear()


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spaCy pipeline that knows one verb."""
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    rules: Any = nlp.add_pipe("attribute_ruler")
    rules.add([[{"LOWER": {"NOT_IN": ["met"]}}]], {"POS": "NOUN", "TAG": "NN"})
    rules.add([[{"LOWER": "met"}]], {"POS": "VERB", "TAG": "VBD"})
    nlp.to_disk(tmp_path / "pipeline")
    monkeypatch.setenv("SPANDET_SPACY", str(tmp_path / "pipeline"))


@pytest.mark.usefixtures("pipeline")
def test_known_tag_sets_are_tagged_by_spacy() -> None:
    assert tagger_for(UNIVERSAL)(["They", "met"]) == ["NOUN", "VERB"]
    assert tagger_for(PENN)(["They", "met", "don't stop"]) == ["NN", "VBD", "NN"]


def test_an_unknown_tag_set_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"\(ADJA, NE, …\), and no tagger for these is known"):
        tagger_for(["NE", "ADJA"])


def test_a_missing_pipeline_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setenv("SPANDET_SPACY", "xx_absent")
    with pytest.raises(UsageError, match="python -m spacy download xx_absent"):
        tagger_for(PENN)


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("spacy"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError, match=r"pip install 'spandet\[spacy\]'"):
        tagger_for(PENN)


def tagged_model(tags: tuple[str, ...]) -> Recognizer:
    row = WordRow(("a", "b", "c"), [Entity(WordSpan(0, 1), "x")], tags)
    values = {
        "encoder": {"hashed": {"dim": 8, "rows": 16}, "tags": {"dim": 4, "min_count": 1}},
        "detector": {"name": "locate-and-label"},
    }
    return Recognizer.build(ModelSettings.resolve(values), [Document.from_rows([row])])


@pytest.mark.usefixtures("pipeline")
def test_raw_text_is_tagged_and_given_tags_are_kept() -> None:
    model = tagged_model(UNIVERSAL)
    (example,) = model.tagged(model.examples_of(Document("They met")))
    assert example.tags == ("NOUN", "VERB")
    own = model.examples_of(Document.from_rows([WordRow(("They", "met"), (), ("X", "X"))]))
    assert model.tagged(own) is own
    assert model("They met. They met.").text
    assert model("").text == ""


def test_a_custom_tagger_takes_precedence() -> None:
    model = tagged_model(("NE", "ADJA", "KON"))
    with pytest.raises(UsageError, match="no tagger for these is known"):
        model("They met.")
    model.tagger = lambda words: ["NE"] * len(words)
    assert model("They met.").text == "They met."


def test_tuning_uses_the_same_tags_as_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a model would be tuned without tags and predict with them."""
    model = tagged_model(("NE", "ADJA", "KON"))
    model.tagger = lambda words: ["NE"] * len(words)
    monkeypatch.setattr(model, "long_sentences", LongSentences(words=8, overlap=2))
    read: list[tuple[Example, ...]] = []
    detect = TorchEngine.detect

    def recorded(engine: TorchEngine, examples: Sequence[Example]) -> SpanPredictions:
        read.append(tuple(examples))
        return detect(engine, examples)

    monkeypatch.setattr(TorchEngine, "detect", recorded)
    documents = [Document("They met. " * 3), Document(" ".join(["word"] * 20))]
    list(model.predict(documents))
    predicted = list(read)
    read.clear()
    tune(model, documents)
    assert read == predicted
    assert {tag for batch in read for example in batch for tag in example.tags} == {"NE"}
