"""spandet in a spaCy pipeline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spandet.errors import ConfigError, UsageError
from spandet.inference.recognizer import Recognizer
from spandet.integrations.model_files import packed, unpacked
from spandet.integrations.spacy_component import ComponentSettings, SpandetComponent
from spandet.text import CharSpan, Document, Entity
from support.small_models import small_model, small_texts

TEXTS = small_texts(12)


@pytest.fixture(scope="module")
def model() -> Path:
    return small_model("locate-and-label")


@pytest.fixture(scope="module")
def recognizer(model: Path) -> Recognizer:
    return Recognizer.from_pretrained(model)


def pipeline(model: Path | str, **config: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("spandet", config={"model": str(model), **config})
    return nlp


def exact(doc: Doc, key: str = "spandet") -> list[tuple[int, int, str]]:
    return [(item["start"], item["end"], item["label"]) for item in doc._.spandet[key]]


def triples(document: Document) -> list[tuple[int, int, str]]:
    return [(e.span.start, e.span.end, e.label) for e in document.entities]


def spans(doc: Doc, key: str = "spandet") -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


class FixedRecognizer(Recognizer):
    """A recognizer that finds given entities in every document."""

    def __init__(self, *entities: Entity[CharSpan]) -> None:
        self.found = entities
        self.documents: list[Document] = []

    def predict(self, documents: Any, *options: Any, **keywords: Any) -> Any:
        for document in documents:
            if "poison" in document.text:
                raise ValueError("poison")
            self.documents.append(document)
            yield Document(document.text, self.found)


def finding(*entities: Entity[CharSpan], **config: Any) -> tuple[Language, FixedRecognizer]:
    nlp = pipeline("nowhere", **config)
    recognizer = FixedRecognizer(*entities)
    component = nlp.get_pipe("spandet")
    assert isinstance(component, SpandetComponent)
    component.recognizer = recognizer
    return nlp, recognizer


def entity(start: int, end: int, label: str, score: float = 0.5) -> Entity[CharSpan]:
    return Entity(CharSpan(start, end), label, score)


def test_a_doc_has_the_entities_of_its_text(model: Path, recognizer: Recognizer) -> None:
    nlp = pipeline(model)
    total = 0
    for text in TEXTS:
        doc, document = nlp(text), recognizer(text)
        total += len(document.entities)
        assert exact(doc) == triples(document)
        assert len(doc.spans["spandet"]) == len(document.entities)
        for span, found in zip(doc.spans["spandet"], document.entities, strict=True):
            assert span.label_ == found.label
            assert span.start_char <= found.span.start < found.span.end <= span.end_char
        scores = [found.score for found in document.entities]
        assert doc.spans["spandet"].attrs["scores"] == pytest.approx(scores, abs=1e-5)
    assert total > len(TEXTS)


def test_a_stream_gives_the_same_as_single_docs(model: Path) -> None:
    nlp = pipeline(model)
    alone = [spans(nlp(text)) for text in TEXTS]
    assert [spans(doc) for doc in nlp.pipe(TEXTS, batch_size=5)] == alone
    numbered = nlp.pipe(zip(TEXTS, range(12), strict=True), as_tuples=True)
    assert [(spans(doc), n) for doc, n in numbered] == list(zip(alone, range(12), strict=True))


def test_spans_are_expanded_to_whole_tokens() -> None:
    nlp, _ = finding(entity(1, 3, "a"), entity(6, 9, "b"), entity(5, 9, "b"))
    doc = nlp("abcd efgh ij")
    assert spans(doc) == [(0, 1, "a"), (1, 2, "b"), (1, 2, "b")]
    assert exact(doc) == [(1, 3, "a"), (6, 9, "b"), (5, 9, "b")]


def test_a_discontinuous_entity_keeps_its_fragments_and_is_not_in_ents() -> None:
    gapped = Entity.from_fragments([CharSpan(0, 2), CharSpan(6, 8)], "x", 0.9)
    nlp, _ = finding(gapped, entity(3, 5, "y"), ents=True)
    doc = nlp("ab cd ef")
    assert spans(doc) == [(0, 3, "x"), (1, 2, "y")]
    assert doc._.spandet["spandet"][0]["fragments"] == [[0, 2], [6, 8]]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("cd", "y")]


@pytest.mark.parametrize(
    ("prefer", "wanted"),
    [
        ("longest", [("ab cd ef", "x"), ("gh", "z")]),
        ("best", [("ab", "z"), ("cd ef", "y"), ("gh", "z")]),
    ],
)
def test_ents_do_not_overlap(prefer: str, wanted: list[tuple[str, str]]) -> None:
    found = [entity(0, 8, "x", 0.7), entity(3, 8, "y", 0.8), entity(0, 2, "z", 0.75)]
    nlp, _ = finding(*found, entity(9, 11, "z", 0.6), ents=True, prefer=prefer)
    doc = nlp("ab cd ef gh")
    assert len(doc.spans["spandet"]) == 4
    assert [(ent.text, ent.label_) for ent in doc.ents] == wanted


def test_ents_of_other_components_are_kept_unless_they_overlap() -> None:
    nlp, _ = finding(entity(0, 5, "x"), ents=True)
    doc = nlp.make_doc("ab cd ef gh")
    doc.ents = [Span(doc, 1, 3, label="OLD"), Span(doc, 3, 4, label="OLD")]
    assert [(e.text, e.label_) for e in nlp(doc).ents] == [("ab cd", "x"), ("gh", "OLD")]


def test_ents_are_not_written_by_default() -> None:
    nlp, _ = finding(entity(0, 2, "x"))
    assert not nlp("ab cd").ents


def test_two_models_in_one_pipeline() -> None:
    nlp, _ = finding(entity(0, 2, "x"))
    second = ComponentSettings(model="nowhere", spans_key="other")
    component = SpandetComponent("other", second)
    component.recognizer = FixedRecognizer(entity(3, 5, "y"))
    doc = component(nlp("ab cd"))
    assert (exact(doc), exact(doc, "other")) == ([(0, 2, "x")], [(3, 5, "y")])
    assert nlp("ab cd")._.spandet.keys() == {"spandet"}


def test_settings_are_passed_to_the_model(model: Path, recognizer: Recognizer) -> None:
    label = recognizer.labels[0]
    everything = pipeline(model, min_score=0.0, labels=[label], spans_key="low")
    text = TEXTS[0]
    wanted = triples(recognizer(text, min_score=0.0, labels=[label]))
    assert exact(everything(text), "low") == wanted
    assert everything.pipe_labels["spandet"] == [label]


def test_an_unknown_label_is_an_error_with_its_name(model: Path) -> None:
    with pytest.raises(UsageError, match="cheese"):
        pipeline(model, labels=["cheese"])("Some text.")


def test_an_invalid_setting_is_an_error_with_its_name() -> None:
    with pytest.raises(ConfigError, match=r"\[components\.spandet\] min_score: .*got 2"):
        pipeline("nowhere", min_score=2.0)


def test_a_missing_model_is_an_error_on_first_use() -> None:
    with pytest.raises(UsageError, match="nowhere"):
        pipeline("./nowhere")("Some text.")


def test_errors_go_to_the_error_handler_of_the_pipeline() -> None:
    nlp, _ = finding(entity(0, 2, "x"))
    with pytest.raises(ValueError, match="poison"):
        list(nlp.pipe(["ab", "poison"]))
    seen: list[str] = []

    def note(name: str, proc: object, docs: list[Doc], error: Exception) -> None:
        seen.extend(doc.text for doc in docs)

    nlp.set_error_handler(note)  # type: ignore[arg-type]
    assert [doc.text for doc in nlp.pipe(["ab", "poison", "cd"], batch_size=3)] == ["ab", "cd"]
    assert seen == ["poison"]


def test_use_doc_tokens() -> None:
    nlp, recognizer = finding(use_doc_tokens=True)
    text = "One of us left. Two stay\n\nhere."
    nlp(text)
    (document,) = recognizer.documents
    own = document.own_sentences
    assert own is not None
    assert [" ".join(sentence.words) for sentence in own] == [
        "One of us left .",
        "Two stay",
        "here .",
    ]
    nlp.add_pipe("sentencizer", first=True, config={"punct_chars": ["stay"]})
    nlp(text)
    assert len(recognizer.documents[1].own_sentences or ()) < 3
    assert recognizer.documents[1].text == text


@pytest.mark.parametrize("text", ["", " ", "\n\n", "x", "\u202bשלום\u202c עולם", "a\x00b", "😀 é"])
def test_unusual_texts(model: Path, recognizer: Recognizer, text: str) -> None:
    doc = pipeline(model, min_score=0.0)(text)
    assert exact(doc) == triples(recognizer(text, min_score=0.0))


def test_a_pipeline_on_disk_contains_its_model(model: Path, tmp_path: Path) -> None:
    nlp = pipeline(model, spans_key="mine")
    wanted = [spans(doc, "mine") for doc in nlp.pipe(TEXTS)]
    nlp.config["components"]["spandet"]["model"] = "/gone"  # as on another machine
    nlp.to_disk(tmp_path / "nlp")
    text = (tmp_path / "nlp" / "config.cfg").read_text()
    (tmp_path / "nlp" / "config.cfg").write_text(text.replace(str(model), "/gone"))
    again = spacy.load(tmp_path / "nlp")
    assert [spans(doc, "mine") for doc in again.pipe(TEXTS)] == wanted
    assert not list(tmp_path.rglob("*.pkl"))


def test_a_pipeline_can_be_saved_without_its_model(model: Path, tmp_path: Path) -> None:
    nlp = pipeline(model)
    nlp.to_disk(tmp_path / "nlp", exclude=["spandet"])
    assert not (tmp_path / "nlp" / "spandet").exists()
    again = spacy.load(tmp_path / "nlp")
    assert spans(again(TEXTS[0])) == spans(nlp(TEXTS[0]))


def test_a_pipeline_in_bytes_contains_its_model(model: Path) -> None:
    nlp = pipeline(model)
    other = pipeline("/gone").from_bytes(nlp.to_bytes())
    assert [spans(d) for d in other.pipe(TEXTS)] == [spans(d) for d in nlp.pipe(TEXTS)]
    ours, theirs = nlp.get_pipe("spandet"), other.get_pipe("spandet")
    assert isinstance(ours, SpandetComponent)
    assert isinstance(theirs, SpandetComponent)
    assert theirs.to_bytes() == ours.to_bytes()


def test_a_packed_model_cannot_write_outside_its_folder(recognizer: Recognizer) -> None:
    files = packed(recognizer)
    for name in ("../evil", "/evil", "a/../../evil"):
        with pytest.raises(UsageError, match="expected a path inside"):
            unpacked({**files, name: b""})


def test_entities_are_stored_in_a_docbin(model: Path) -> None:
    nlp = pipeline(model)
    doc = nlp(TEXTS[0])
    stored = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (again,) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    assert spans(again) == spans(doc)
    assert list(again._.spandet["spandet"]) == doc._.spandet["spandet"]
    assert again.spans["spandet"].attrs["scores"] == doc.spans["spandet"].attrs["scores"]


def test_the_component_is_registered_without_loading_a_model() -> None:
    code = (
        "import spacy, sys; nlp = spacy.blank('de');"
        "nlp.add_pipe('spandet', config={'model': 'm'});"
        "print(nlp.pipe_names, 'spandet.inference.recognizer' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['spandet'] False"
