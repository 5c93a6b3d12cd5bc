"""Laws of prediction that hold for every detector, on any text, from any thread."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet import generate
from spandet.errors import UsageError
from spandet.inference.long_sentences import LongSentences
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from spandet.text import Document
from support.small_models import DETECTORS

SMALLER: dict[str, dict[str, Any]] = {
    "locate-and-label": {"filter_threshold": 0.0, "lengths": [1, 2, 3]},
    "proposer-regressor": {"cell": "lstm", "recurrent_dim": 16, "heads": 2, "layers": 1},
    "boundary-diffusion": {"dim": 16},
    "span-jury": {"dim": 16, "heads": 2},
    "biaffine": {"dim": 16, "max_width": 4, "min_odds": 0.0},
}
ODD = {
    "empty": "",
    "one character": "x",
    "white space": " \t\r\n\u00a0\u2003 ",
    "NUL": "a\0b \0 \0\0",
    "lone surrogates": "\ud800 x\udfff\udfff y \udc00",
    "right to left": "דוד בן-גוריון נולד בפלונסק. ولد محمد في مكة.",
    "marks alone": "\u0301\u0301 \u200d\u200d \ufe0f",
    "one long word": "a" * 5000,
    "no spaces": "的" * 900,
    "emoji": "👩‍👩‍👧‍👦🇩🇪 x",
}


@lru_cache
def random_model(detector: str) -> Recognizer:
    """An untrained model that finds entities everywhere."""
    torch.manual_seed(1)
    values = {
        "encoder": {
            "hashed": {"dim": 8, "rows": 64},
            "characters": {"embedding_dim": 4, "dim": 8},
            "fusion": {"dim": 16},
        },
        "detector": {"name": detector, **SMALLER[detector]},
        "decoding": {"threshold": 0.0, "min_odds": 0.0},
    }
    model = Recognizer.build(ModelSettings.resolve(values), list(generate(30, seed=2)))
    with torch.no_grad():
        for parameter in model.modules().parameters():
            parameter.normal_(std=0.3)
    return model


def check_offsets(document: Document, text: str) -> None:
    assert document.text == text
    starts = {start for sentence in document.sentences for start in sentence.starts}
    for entity in document.entities:
        assert text[entity.span.start : entity.span.end] == document.text_of(entity)
        assert entity.span.start in starts
        assert document.text_of(entity).strip() == document.text_of(entity) != ""
        assert entity.score is not None
        assert 0 <= entity.score <= 1


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("detector", DETECTORS)
def test_unusual_texts_have_exact_offsets(detector: str, name: str) -> None:
    check_offsets(random_model(detector)(ODD[name]), ODD[name])


@pytest.mark.parametrize("detector", DETECTORS)
@settings(max_examples=15)
@given(texts=st.lists(st.text(max_size=60) | st.sampled_from(sorted(ODD.values())), max_size=6))
def test_any_texts_are_returned_in_order_with_exact_offsets(
    detector: str, texts: list[str]
) -> None:
    model = random_model(detector)
    found = list(model.predict(texts))
    assert len(found) == len(texts)
    for document, text in zip(found, texts, strict=True):
        check_offsets(document, text)


def keys(document: Document) -> list[tuple[int, int, str]]:
    return [(e.span.start, e.span.end, e.label) for e in document.entities]


@pytest.mark.parametrize("detector", DETECTORS)
def test_texts_and_documents_give_the_same_entities(detector: str) -> None:
    model = random_model(detector)
    texts = [document.text for document in generate(20, seed=5)]
    from_texts = [keys(d) for d in model.predict(texts)]
    assert from_texts == [keys(d) for d in model.predict(map(Document, texts))]
    assert from_texts == [keys(model(text)) for text in texts]
    assert sum(map(len, from_texts)) > 50


@pytest.mark.parametrize("detector", DETECTORS)
def test_min_score_and_labels_only_remove_entities(detector: str) -> None:
    model = random_model(detector)
    text = " ".join(document.text for document in generate(12, seed=6))
    everything = model(text)
    labels = sorted({e.label for e in everything.entities})
    chosen = model(text, labels=labels[:1])
    assert keys(chosen) == [key for key in keys(everything) if key[2] == labels[0]]
    assert keys(model(text, labels=[])) == []
    scores = sorted(e.score or 0 for e in everything.entities)
    middle = scores[len(scores) // 2]
    above = model(text, min_score=middle)
    assert all((e.score or 0) > middle for e in above.entities)
    assert set(keys(above)) <= set(keys(everything)) or model.decoding.crossing == "both"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["gene", "nothing"]}, "does not know the label 'nothing'; it knows "),
        ({"labels": "gene"}, r"labels must be a list of labels, such as \['gene'\]"),
        ({"min_score": 1.5}, "min_score must be less than or equal to 1, not 1.5"),
        ({"min_score": float("nan")}, "min_score must be less than or equal to 1, not nan"),
        ({"batch_pieces": 0}, "batch_pieces must be greater than or equal to 1, not 0"),
        ({"minscore": 0.1}, "there is no option minscore; there are min_score, labels, flat"),
    ],
)
def test_invalid_arguments_are_errors_before_the_first_document(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        random_model(DETECTORS[0]).predict([], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("detector", DETECTORS)
def test_long_sentences_are_predicted_in_windows(
    detector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(detector)
    words = [word for d in generate(40, seed=7) for s in d.sentences for word in s.words]
    short, long = " ".join(words[:30]), " ".join(word for word in words if word != ".")
    before = model(short)
    monkeypatch.setattr(model, "long_sentences", LongSentences(words=40, overlap=20))
    assert model(short) == before
    most = 0
    prepare = model.encoder.prepare

    def recorded(examples: list[object]) -> object:
        nonlocal most
        most = max(most, *(len(example.words) for example in examples))  # type: ignore[attr-defined]
        return prepare(examples)  # type: ignore[arg-type]

    monkeypatch.setattr(model.encoder, "prepare", recorded)
    found = model(long)
    assert most == 40
    check_offsets(found, long)
    (sentence, *_) = sorted(found.sentences, key=len, reverse=True)
    assert len(sentence) > 200
    middle = [
        e for e in found.entities if sentence.starts[100] < e.span.start < sentence.starts[150]
    ]
    assert middle
    assert len(set(keys(found))) == len(keys(found))
    spans = [e.span for e in found.entities]
    assert not any(a.crosses(b) for a in spans for b in spans)


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS)
def test_eight_threads_find_the_same_as_one(detector: str) -> None:
    model = random_model(detector)
    texts = [document.text for document in generate(48, seed=8)]
    wanted = [model(text) for text in texts]
    model.modules().train()  # the first call must not disturb the others
    model.modules().eval()
    start = threading.Barrier(8)

    def work(shift: int) -> bool:
        start.wait()
        order = [(shift + n) % len(texts) for n in range(len(texts))]
        return all(model(texts[n]) == wanted[n] for n in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream() -> None:
    model = random_model(DETECTORS[0])

    def texts(count: int) -> Iterator[str]:
        for number in range(count):
            yield f"Text {number % 50} of many."  # the encoder caches the forms of new words

    def peak(count: int) -> int:
        gc.collect()
        tracemalloc.start()
        for _ in model.predict(texts(count)):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1100)
    assert peak(4200) < 1.2 * peak(1100)


def test_progress_is_shown_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(random_model(DETECTORS[0]).predict(["One.", "Two."], progress=True))
    assert [document.text for document in found] == ["One.", "Two."]
    assert capsys.readouterr().out == ""


def test_an_unknown_device_is_an_error_with_its_name() -> None:
    from spandet.inference.device import device_of  # noqa: PLC0415

    assert device_of(None) == device_of("cpu") == torch.device("cpu")
    assert device_of("auto").type in ("cpu", "cuda", "mps")
    for name in ("tpu9", "cuda:99"):
        with pytest.raises(UsageError, match=f"cannot compute on the device '{name}'"):
            device_of(name)
