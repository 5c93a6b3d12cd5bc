"""spaCy's DocBin: spaCy reads our files, and we read spaCy's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spandet.errors import FormatError, MissingExtraError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity, Sentence, WordRow, WordSpan

spacy = pytest.importorskip("spacy")


def unpacked(path: Path) -> list[Any]:
    return list(spacy.tokens.DocBin().from_disk(path).get_docs(spacy.vocab.Vocab()))


def packed(path: Path, *docs: Any) -> Path:
    spacy.tokens.DocBin(docs=docs).to_disk(path)
    return path


def doc(*words: str, **annotation: Any) -> Any:
    return spacy.tokens.Doc(spacy.vocab.Vocab(), words=list(words), **annotation)


def test_spacy_sees_tokens_spans_sentences_and_tags(tmp_path: Path) -> None:
    rows = [
        WordRow(["IL-2", "gene"], [Entity(WordSpan(0, 2), "DNA", 0.5)], ["NN", "NNS"]),
        WordRow(["Why"], [Entity(WordSpan(0, 1), "X")]),
    ]
    path = tmp_path / "out.spacy"
    write([Document.from_rows(rows, id="a")], path)
    (found,) = unpacked(path)
    assert found.text == "IL-2 gene\nWhy"
    assert [token.text_with_ws for token in found] == ["IL-2 ", "gene", "\n", "Why"]
    assert [token.tag_ for token in found] == ["NN", "NNS", "", ""]
    assert [sentence.text for sentence in found.sents] == ["IL-2 gene\n", "Why"]
    group = found.spans["sc"]
    assert [(span.start, span.end, span.label_) for span in group] == [(0, 2, "DNA"), (3, 4, "X")]
    assert group.attrs == {"scores": [0.5, None]}


def test_white_space_of_every_kind_is_kept(tmp_path: Path) -> None:
    text = "\n a  b \t c\u00a0d "
    path = tmp_path / "out.spacy"
    write([Document(text)], path)
    (found,) = unpacked(path)
    assert found.text == text
    (back,) = read(path)
    assert back.text == text
    assert [sentence.words for sentence in back.sentences] == [("a", "b", "c", "d")]


def test_text_outside_of_words_becomes_tokens(tmp_path: Path) -> None:
    own = (Sentence(("b",), (2,)),)
    path = tmp_path / "out.spacy"
    write([Document("a b c", (Entity(CharSpan(2, 5), "X"),), own_sentences=own)], path)
    assert [token.text for token in unpacked(path)[0]] == ["a ", "b", "c"]


def test_spacys_own_documents_are_read(tmp_path: Path) -> None:
    made = doc("Zoe", "ran", "home", spaces=[True, True, False])
    made.spans["sc"] = [spacy.tokens.Span(made, 0, 1, label="PER")]
    made.spans["sc"].attrs["scores"] = np.array([0.25], dtype="float32")
    (found,) = read(packed(tmp_path / "own.spacy", made))
    assert found.text == "Zoe ran home"
    assert found.id is None
    assert [sentence.words for sentence in found.sentences] == [("Zoe", "ran", "home")]
    assert found.entities == (Entity(CharSpan(0, 3), "PER", 0.25),)


def test_ents_are_read_and_written_on_demand(tmp_path: Path) -> None:
    made = doc("Zoe", "ran", ents=["B-PER", "O"])
    path = packed(tmp_path / "own.spacy", made)
    for corpus in (read(path, spans_key="ents"), read(path, "docbin-ents")):
        (found,) = corpus
        assert found.entities == (Entity(CharSpan(0, 3), "PER"),)
    write([found], tmp_path / "out.spacy", "docbin-ents")
    (back,) = unpacked(tmp_path / "out.spacy")
    assert [(span.text, span.label_) for span in back.ents] == [("Zoe", "PER")]


def test_the_error_for_a_wrong_key_lists_the_keys(tmp_path: Path) -> None:
    made = doc("Zoe", "ran", ents=["B-PER", "O"])
    made.spans["names"] = [made[0:1]]
    path = packed(tmp_path / "own.spacy", doc("nothing", "here"), made)
    corpus = read(path, skip_bad=True)
    assert [document.text for document in corpus] == ["nothing here "]
    assert [str(error) for error in corpus.skipped] == [
        (
            f"{path}: document 1: no spans are called 'sc', expected one of its own as spans_key: "
            f"'names', 'ents'"
        )
    ]


@pytest.mark.parametrize("key", ["ents", "names"])
def test_spans_under_other_keys_are_an_error_if_there_are_no_others(
    tmp_path: Path, key: str
) -> None:
    made, empty = doc("Zoe", "ran"), doc("nothing", "here")
    made.spans["sc"] = [made[0:1]]
    made.spans["names"] = empty.spans["names"] = []
    path = packed(tmp_path / "own.spacy", made, empty)
    with pytest.raises(FormatError, match=f"own.spacy: no spans are called '{key}', .*: 'sc'"):
        list(read(path, spans_key=key))
    assert len(list(read(path, spans_key="sc", skip_bad=True))) == 1


def test_scores_must_fit_their_spans(tmp_path: Path) -> None:
    made = doc("Zoe", "ran")
    made.spans["sc"] = [made[0:1]]
    made.spans["sc"].attrs["scores"] = [0.5, 0.5]
    with pytest.raises(FormatError, match="2 scores for 1 spans, expected one each"):
        list(read(packed(tmp_path / "own.spacy", made)))
    made.spans["sc"].attrs["scores"] = [7.5]
    with pytest.raises(FormatError, match=r"score is 7\.5, expected a number from 0 to 1"):
        list(read(packed(tmp_path / "own.spacy", made)))


def test_ents_cannot_represent_an_empty_label(tmp_path: Path) -> None:
    document = Document("Zoe ran", (Entity(CharSpan(0, 3), ""),))
    with pytest.raises(FormatError, match=r"characters 0:3\) has an empty label, which doc\.ents"):
        write([document], tmp_path / "out.spacy", "docbin-ents")
    write([document], tmp_path / "out.spacy", "docbin")
    assert [one.entities for one in read(tmp_path / "out.spacy")] == [document.entities]


def test_damage_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.spacy"
    path.write_bytes(b"not zlib")
    with pytest.raises(FormatError, match=r"bad\.spacy: not a DocBin that spaCy can read \(Value"):
        list(read(path))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            Document("IL-2 gene", (Entity(CharSpan(0, 7), "X"),), "a"),
            (
                "document 'a': entity 'IL-2 ge' (X, characters 0:7) does not begin and end at word "
                "boundaries"
            ),
        ),
        (
            Document("a b c", (Entity.from_fragments([CharSpan(0, 1), CharSpan(4, 5)], "X"),), "a"),
            (
                "document 'a': entity 'a … c' (X, characters 0:5) is discontinuous, which spaCy "
                "cannot hold"
            ),
        ),
        (
            Document("a\ud800", (), "a"),
            "document 'a': character U+D800 is a lone surrogate, which spaCy cannot hold",
        ),
        (
            Document("ab", (), "a", {}, (Sentence(("ab", "b"), (0, 1)),)),
            "document 'a': the word 'b' at 1 overlaps the one before",
        ),
    ],
)
def test_what_spacy_cannot_represent_is_refused(
    tmp_path: Path, document: Document, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        write([document], tmp_path / "out.spacy")
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())


def test_nested_entities_are_no_ents(tmp_path: Path) -> None:
    entities = (Entity(CharSpan(0, 3), "X"), Entity(CharSpan(0, 1), "Y"))
    with pytest.raises(FormatError, match=r"'a' .Y, characters 0:1. overlaps 'a b' .X.*doc\.ents"):
        write([Document("a b", entities)], tmp_path / "out.spacy", "docbin-ents")


def test_without_spacy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "own.spacy", doc("a"))
    monkeypatch.setitem(sys.modules, "spacy", None)
    message = r'the format docbin needs an extra: pip install "spandet\[spacy\]"'
    with pytest.raises(MissingExtraError, match=message):
        list(read(path))
    with pytest.raises(MissingExtraError, match=message):
        write([], tmp_path / "out.spacy")
