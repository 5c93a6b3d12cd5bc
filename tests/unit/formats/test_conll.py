"""CoNLL columns: a sample, and error messages."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

SAMPLE = """-DOCSTART- -X- -X- O

Zoe NNP B-NP B-PER
left VBD B-VP O
New NNP B-NP B-LOC
Lund NNP I-NP I-LOC

Why WRB B-ADVP O
-DOCSTART- (17 Oslo)
Oslo NNP B-NP B-LOC
"""


def corpus(folder: Path, text: str, name: str = "sample.conll") -> list[Document]:
    (folder / name).write_bytes(text.encode())
    return list(read(folder / name))


def found(document: Document) -> list[tuple[str, str]]:
    return [(document.text_of(entity), entity.label) for entity in document.entities]


def one(words: str, *entities: tuple[int, int, str]) -> Document:
    made = [Entity(WordSpan(start, end), label) for start, end, label in entities]
    return Document.from_rows([WordRow(words.split("|"), made)], id="a")


def test_documents_sentences_words_and_tags_are_read(tmp_path: Path) -> None:
    first, second = corpus(tmp_path, SAMPLE)
    assert (first.id, second.id) == (None, "17 Oslo")
    assert first.text == "Zoe left New Lund\nWhy"
    assert [sentence.words for sentence in first.sentences] == [
        ("Zoe", "left", "New", "Lund"),
        ("Why",),
    ]
    assert first.sentences[0].tags == ("NNP", "VBD", "NNP", "NNP")
    assert found(first) == [("Zoe", "PER"), ("New Lund", "LOC")]
    assert found(second) == [("Oslo", "LOC")]


def test_line_ends_spacing_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    windows = "\ufeff" + SAMPLE.replace("\n", "\r\n")
    tabs = SAMPLE.replace(" ", "\t").replace("17\tOslo", "17 Oslo")
    wide = SAMPLE.replace("\n\n", "\n \t\n").replace("Zoe ", " Zoe   ").replace("left", " left")
    expected = corpus(tmp_path, SAMPLE)
    assert corpus(tmp_path, windows) == expected
    assert corpus(tmp_path, tabs) == expected
    assert corpus(tmp_path, wide) == expected


def test_without_docstart_each_sentence_is_a_document(tmp_path: Path) -> None:
    first, second = corpus(tmp_path, "a\tO\n\n\n\nb\tB-X\nc\tI-X")
    assert (first.text, second.text, first.id) == ("a", "b c", None)
    assert first.sentences[0].tags == ()
    assert found(second) == [("b c", "X")]


def test_only_tabs_and_spaces_separate(tmp_path: Path) -> None:
    (document,) = corpus(tmp_path, "a\u00a0b\u2028 \x1c O\nNew York\tNN\tB-X\n")
    assert document.sentences[0].words == ("a\u00a0b\u2028", "New York")
    assert document.sentences[0].tags == ("\x1c", "NN")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a O\nb\n", ":2: found 1 column, expected 2 as in the first line of the sentence"),
        ("a O\n\u00a0\n", ":2: found 1 column, expected 2 as in the first line of the sentence"),
        ("a\n", ":1: found 1 column, expected a word and a tag"),
        (
            "a O\n\nb NN O\nc O\n",
            ":4: found 2 columns, expected 3 as in the first line of the sentence",
        ),
        ("\n\na O\nb LOC\n", ':4: the tag is "LOC", expected O, or one of B I E S M L U'),
        ("a O\nb E-X\n", ":2: the tag is E-X, but no X entity is open here"),
        ("a\tO\n\tO\n", ":2: the word is empty, expected one before the first tab"),
    ],
)
def test_errors_have_the_line_number(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        corpus(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/sample.conll{message}")


def test_after_a_bad_sentence_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.conll"
    path.write_bytes(b"-DOCSTART- (x)\n\na O\n\nb \xff\nc O\n\nd Q\n\ne O\n")
    documents = read(path, skip_bad=True)
    assert [document.text for document in documents] == ["a\ne"]
    assert [str(error).removeprefix(str(tmp_path)) for error in documents.skipped] == [
        "/bad.conll:5: byte 0xff at position 2 is not UTF-8",
        '/bad.conll:8: the tag is "Q", expected O, or one of B I E S M L U with a dash and a label',
    ]


def test_the_file_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.conll.gz"
    tagged = WordRow(["IL-2", "gene"], [Entity(WordSpan(0, 2), "DNA", 0.5)], ["NN", "NN"])
    write([Document.from_rows([WordRow(["one"])])], path)
    assert gzip.decompress(path.read_bytes()) == b"one O\n\n"
    documents = [
        Document.from_rows([WordRow(["alone"])]),
        Document.from_rows([tagged, WordRow(["two"])], id="x (1)"),
        Document.from_rows([WordRow(["three"])]),
    ]
    write(documents, path, "conll-bioes")
    assert gzip.decompress(path.read_bytes()).decode() == (
        "alone O\n\n-DOCSTART- (x (1))\n\nIL-2 NN B-DNA\ngene NN E-DNA\n\ntwo O\n\n"
        "-DOCSTART- O\n\nthree O\n\n"
    )


def test_a_word_like_a_byte_order_mark_is_not_lost(tmp_path: Path) -> None:
    document = Document.from_rows([WordRow(["\ufeffa"])])
    write([document], tmp_path / "out.conll")
    assert list(read(tmp_path / "out.conll")) == [document]


def test_raw_text_is_written_in_its_words(tmp_path: Path) -> None:
    raw = Document("Zoe ran.", (Entity(CharSpan(0, 3), "PER"),))
    write([raw], tmp_path / "out.bio")
    assert (tmp_path / "out.bio").read_text() == "Zoe B-PER\nran O\n. O\n\n"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            one("IL-2|gene", (0, 1, "protein"), (0, 2, "DNA")),
            (
                "sentence 0: 'IL-2 gene' (DNA, words 0:2) overlaps 'IL-2' (protein, words 0:1), "
                "which CoNLL columns cannot hold"
            ),
        ),
        (
            one("a|b|c", (0, 2, "X"), (1, 3, "Y")),
            (
                "sentence 0: 'a b' (X, words 0:2) overlaps 'b c' (Y, words 1:3), "
                "which CoNLL columns cannot hold"
            ),
        ),
        (
            one("a", (0, 1, "X"), (0, 1, "Y")),
            (
                "sentence 0: 'a' (X, words 0:1) overlaps 'a' (Y, words 0:1), "
                "which CoNLL columns cannot hold"
            ),
        ),
        (
            Document.from_rows(
                [
                    WordRow("ab"),
                    WordRow("abc", [Entity.from_fragments([WordSpan(0, 1), WordSpan(2, 3)], "X")]),
                ],
                id="a",
            ),
            "sentence 1: 'a b c' (X, words 0:3) is discontinuous, which CoNLL columns cannot hold",
        ),
        (one("ok|New York"), 'sentence 0: word 1 is "New York", which a column cannot hold'),
        (
            one("ok|-DOCSTART-"),
            'sentence 0: word 1 is "-DOCSTART-", which a column cannot hold',
        ),
        (
            one("a|b|c", (0, 1, "X"), (1, 2, "cell type")),
            'sentence 0: the label of entity 1 is "cell type", which a column cannot hold',
        ),
        (one("a", (0, 1, "")), "sentence 0: the label of entity 0 is empty, which a column cannot"),
        (
            Document.from_rows([WordRow([])], id="a"),
            "sentence 0: the sentence is empty, which CoNLL columns cannot hold",
        ),
    ],
)
def test_what_columns_cannot_represent_is_refused(
    tmp_path: Path, document: Document, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        write([document], tmp_path / "out.conll")
    assert str(caught.value).startswith(f"document 'a': {message}")
    assert not list(tmp_path.iterdir())


def test_a_part_of_speech_and_an_id_are_checked_too(tmp_path: Path) -> None:
    spaced = Document.from_rows([WordRow(["a"], (), ["N N"])])
    with pytest.raises(FormatError, match='the part of speech of word 0 is "N N", which a column'):
        write([spaced], tmp_path / "out.conll")
    broken = Document.from_rows([WordRow(["a"])], id="a\nb")
    with pytest.raises(FormatError, match="the id has a line end, which a -DOCSTART- line cannot"):
        write([broken], tmp_path / "out.conll")


def test_an_unknown_scheme_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no tag scheme is called 'iob'; there are bio, iob1, bio"):
        write([], tmp_path / "out.conll", scheme="iob")


def test_conll_and_germeval_are_distinguished_by_their_first_lines(tmp_path: Path) -> None:
    (document,) = corpus(tmp_path, "#\tO\nGenes\tB-X\n", "two.tsv")
    assert found(document) == [("Genes", "X")]
