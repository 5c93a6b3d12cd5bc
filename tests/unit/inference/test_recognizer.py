"""The recognizer: building, predicting, saving, tuning."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spandet import evaluate, generate
from spandet.encoding import Example
from spandet.errors import ConfigError, UsageError
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings
from spandet.inference.engine import TorchEngine, to_numpy
from spandet.inference.long_sentences import LongSentences
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.inference.tuning import best_threshold, tune
from spandet.tensors import SpanPredictions
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan
from spandet.training.batches import gold_spans

SMALL = {
    "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
    "detector": {"name": "locate-and-label", "filter_threshold": 0.0},
    "decoding": {"threshold": 0.0, "crossing": "keep"},
}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(generate(30, seed=2))


@pytest.fixture(scope="module")
def recognizer(documents: list[Document]) -> Recognizer:
    """An untrained model that finds entities everywhere."""
    torch.manual_seed(1)
    made = Recognizer.build(ModelSettings.resolve(SMALL), documents)
    with torch.no_grad():
        for parameter in made.modules().parameters():
            parameter.normal_(std=0.4)
    return made


def found(documents: list[Document]) -> list[list[tuple[int, int, str]]]:
    return [[(e.span.start, e.span.end, e.label) for e in d.entities] for d in documents]


def test_labels_come_from_the_documents(recognizer: Recognizer, documents: list[Document]) -> None:
    assert set(recognizer.labels) == {e.label for d in documents for e in d.entities}
    assert list(recognizer.labels) == sorted(recognizer.labels)


def test_prediction_does_not_depend_on_batch_or_order(
    recognizer: Recognizer, documents: list[Document]
) -> None:
    together = list(recognizer.predict(documents))
    assert sum(len(d.entities) for d in together) > 50
    assert [d.id for d in together] == [d.id for d in documents]
    alone = [next(recognizer.predict([d])) for d in documents]
    assert found(alone) == found(together)
    shuffled = random.Random(0).sample(documents, len(documents))
    again = {d.id: d for d in recognizer.predict(shuffled, batch_pieces=50)}
    assert found([again[d.id] for d in documents]) == found(together)
    for one, other in zip(alone, together, strict=True):
        pairs = zip(one.entities, other.entities, strict=True)
        assert all(abs((a.score or 0) - (b.score or 0)) < 1e-5 for a, b in pairs)


def test_raw_text_gets_character_offsets(recognizer: Recognizer) -> None:
    text = "  Tibburn beat IL-2.\r\n\r\nNothing else. "
    document = recognizer(text)
    assert document.text == text
    for entity in document.entities:
        covered = text[entity.span.start : entity.span.end]
        assert covered == covered.strip()


@pytest.mark.parametrize("text", ["", " ", ".", "\x00", "\ud800", "日本", "a" * 5000, "x " * 3000])
def test_unusual_texts_are_predicted(recognizer: Recognizer, text: str) -> None:
    assert recognizer(text).text == text


def test_a_saved_model_finds_the_same(
    recognizer: Recognizer, documents: list[Document], tmp_path: Path
) -> None:
    recognizer.save_pretrained(tmp_path / "model")
    loaded = Recognizer.from_pretrained(tmp_path / "model")
    assert loaded.labels == recognizer.labels
    assert loaded.decoding == recognizer.decoding
    assert list(loaded.predict(documents)) == list(recognizer.predict(documents))


@pytest.mark.parametrize("listed", ['{"parts": {"detector.head": []}}', "{"])
def test_a_model_saved_over_an_export_is_not_exported(
    recognizer: Recognizer, documents: list[Document], tmp_path: Path, listed: str
) -> None:
    (tmp_path / "onnx.json").write_text(listed)
    for name in ("detector.head.onnx", "mine.onnx"):
        (tmp_path / name).touch()
    recognizer.save_pretrained(tmp_path)
    loaded = Recognizer.from_pretrained(tmp_path)
    assert loaded.exported is None
    assert list(loaded.predict(documents)) == list(recognizer.predict(documents))
    left = {path.name for path in tmp_path.glob("*.onnx")}
    assert left == ({"mine.onnx", "detector.head.onnx"} if listed == "{" else {"mine.onnx"})


def test_a_folder_that_is_not_a_model_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a model folder"):
        Recognizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("words", [400, 12])
def test_tuning_is_no_worse_than_any_threshold(
    recognizer: Recognizer, documents: list[Document], words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recognizer.decoding
    monkeypatch.setattr(recognizer, "long_sentences", LongSentences(words=words, overlap=5))
    detect = TorchEngine.detect
    lengths: list[int] = []

    def recorded(engine: TorchEngine, examples: Sequence[Example]) -> SpanPredictions:
        lengths.extend(len(example.words) for example in examples)
        return detect(engine, examples)

    monkeypatch.setattr(TorchEngine, "detect", recorded)
    tuned = tune(recognizer, documents)
    assert max(lengths) <= words  # as in prediction
    scores = {}
    for threshold in (tuned.threshold, 0.0, 0.3, 0.5, 0.7, 0.9):
        recognizer.decoding = tuned.model_copy(update={"threshold": threshold})
        predicted = recognizer.predict(documents)
        scores[threshold] = evaluate(documents, predicted, resamples=0).micro.f1
    recognizer.decoding = before
    assert scores[tuned.threshold] == max(scores.values())


def test_the_best_threshold_lies_between_scores() -> None:
    scored = [(0.9, True), (0.8, True), (0.6, False), (0.4, True), (0.2, False)]
    threshold, f1 = best_threshold(scored, gold=3)
    assert 0.2 < threshold < 0.4
    assert f1 == pytest.approx(2 * 3 / (4 + 3))
    assert best_threshold([], gold=3) == (0.5, 0.0)
    # A threshold cannot separate equal scores.
    assert best_threshold([(0.5, True), (0.5, False)], gold=1)[1] == pytest.approx(2 / 3)


def test_gold_becomes_padded_tensors() -> None:
    rows = [
        WordRow(("a", "b"), [Entity(WordSpan(0, 2), "y"), Entity(WordSpan(1, 2), "unknown")]),
        WordRow(()),
    ]
    gold = gold_spans(rows, ["x", "y"])
    assert gold.spans[gold.mask].tolist() == [[0, 2]]
    assert gold.labels[gold.mask].tolist() == [2]
    assert gold.counts.tolist() == [1, 0]
    assert gold_spans([], ["x"]).spans.shape == (0, 0, 2)


LINKING = {**SMALL, "detector": {"name": "boundary-diffusion", "dim": 8, "fragments": True}}


def test_a_linker_is_built_for_discontinuous_entities(documents: list[Document]) -> None:
    settings = ModelSettings.resolve(LINKING)
    assert settings.fragments
    assert not ModelSettings.resolve(SMALL).fragments
    linking = Recognizer.build(settings, generate(20, domain="clinic"))
    assert linking.settings.fragments
    assert linking.detector.links_fragments
    # Fragments with only white space between them are contiguous.
    spaced = Entity.from_fragments([CharSpan(0, 1), CharSpan(2, 3)], "x")
    for contiguous in (documents, [Document("a b", (spaced,))]):
        made = Recognizer.build(settings, contiguous)
        assert not made.settings.fragments
        assert not made.detector.links_fragments


def test_linked_and_single_fragments_become_entities_and_thresholds_are_tuned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The predictions are gold, with lower scores for discontinuous entities."""
    documents = list(generate(60, domain="clinic", seed=5))
    made = Recognizer.build(ModelSettings.resolve(LINKING), documents)
    rows = {row.words: row for document in documents for row in document.rows()}

    def gold_candidates(_: TorchEngine, examples: Sequence[Example]) -> Candidates:
        gold = gold_spans([rows[e.words] for e in examples], made.labels, fragments=True)
        assert gold.links is not None
        hot = torch.nn.functional.one_hot(gold.labels, 1 + len(made.labels)) * 0.8
        probs = hot + 0.2 / (1 + len(made.labels))
        links = replace(gold.links, together=gold.links.together * 0.6)
        given = SpanPredictions(gold.spans, probs, gold.mask, links=links)
        return to_numpy(given)

    monkeypatch.setattr(TorchEngine, "candidates", gold_candidates)
    made.decoding = DecodingSettings(crossing="keep", threshold=0.6)
    assert evaluate(documents, made.predict(documents)).micro.recall < 0.9
    made.decoding = tune(made, documents)
    assert made.decoding.threshold < 0.6
    predicted = list(made.predict(documents))
    assert evaluate(documents, predicted).micro.f1 == 1
    for gold, found in zip(documents, predicted, strict=True):
        assert {(e.spans, e.label) for e in gold.entities} == {
            (e.spans, e.label) for e in found.entities
        }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"detector": {"name": "yolo"}}, r"\[detector\] name is 'yolo', expected one of locate"),
        (
            {"detector": {"name": "locate-and-label", "preset": "x"}},
            "preset is 'x', expected paper",
        ),
        (
            {"detector": {"name": "span-jury", "preset": "paper"}},
            "span-jury has no presets",
        ),
        ({"detector": {"name": "locate-and-label", "drop": 1}}, "no setting drop; did you mean"),
        ({"decoder": {}}, "there is no section decoder"),
        ({"encoder": {}}, "the encoder needs at least one part"),
    ],
)
def test_invalid_settings_are_errors(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelSettings.resolve({**SMALL, **change})
