"""The two-layer TSV of GermEval 2014: a sample, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import Document, Entity, WordRow, WordSpan

SAMPLE = """#	https://example.org/uni [2011-05-02]
1	Die	O	O
2	Universität	B-ORG	O
3	Lund	I-ORG	B-LOC
4	.	O	O

#	https://example.org/two [2012-01-31]
1	Lunder	B-LOCderiv	O
"""


def corpus(folder: Path, text: str) -> list[Document]:
    path = folder / "sample.tsv"
    path.write_bytes(text.encode())
    return list(read(path))


def one(words: str, *entities: tuple[int, int, str]) -> Document:
    made = [Entity(WordSpan(start, end), label) for start, end, label in entities]
    return Document.from_rows([WordRow(words.split("|"), made)], id="a")


def test_both_layers_and_the_source_are_read(tmp_path: Path) -> None:
    first, second = corpus(tmp_path, SAMPLE)
    assert first.sentences[0].words == ("Die", "Universität", "Lund", ".")
    assert [(first.text_of(entity), entity.label) for entity in first.entities] == [
        ("Universität Lund", "ORG"),
        ("Lund", "LOC"),
    ]
    assert first.sentences[0].metadata == {"source": "https://example.org/uni [2011-05-02]"}
    assert second.entities[0].label == "LOCderiv"


def test_what_was_read_is_written_byte_by_byte(tmp_path: Path) -> None:
    documents = corpus(tmp_path, SAMPLE)
    write(documents, tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == SAMPLE + "\n"


def test_comments_may_be_many_or_missing(tmp_path: Path) -> None:
    first, second = corpus(tmp_path, "#\tone\n#two\r\n1\ta\tO\tO\n\n1\tb\tO\tO\n")
    assert first.sentences[0].metadata == {"source": "one\ntwo"}
    assert second.sentences[0].metadata == {}


def test_the_outer_layer_comes_first(tmp_path: Path) -> None:
    nested = one("a|b|c", (1, 2, "inner"), (2, 3, "low"), (0, 3, "outer"), (2, 3, "first"))
    with pytest.raises(FormatError, match=r"'c' \(low, words 2:3\) overlaps 'c' \(first"):
        write([nested], tmp_path / "out.tsv")
    same = one("a|b", (0, 1, "X"), (1, 2, "Y"), (0, 1, "Z"))
    write([same], tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == "1\ta\tB-X\tB-Z\n2\tb\tB-Y\tO\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\tO\n", ":1: found 3 columns, expected 4: number, word, outer tag and inner tag"),
        ("#\tx\n1\ta\tO\tO\n3\tb\tO\tO\n", ':3: the word\'s number is "3", expected 2'),
        ("1\ta\tO\tO\n1\tb\tO\tO\n", ':2: the word\'s number is "1", expected 2'),
        ("\u0661\ta\tO\tO\n", ':1: the word\'s number is "\\u0661", expected 1'),
        ("1\ta\tO\tLOC\n", ':1: the tag is "LOC", expected O, or one of B I E S M L U'),
        ("1\ta\tO\tO\n2\t\tO\tO\n", ":2: the word is empty, expected one in the second column"),
    ],
)
def test_errors_have_the_line_number(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(text.encode())
    with pytest.raises(FormatError) as caught:
        list(read(path, "germeval"))
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            one("a|b|c", (0, 3, "X"), (0, 2, "Y"), (1, 2, "Z")),
            (
                "sentence 0: 'a b c' (X, words 0:3) overlaps 'a b' (Y, words 0:2) overlaps "
                "'b' (Z, words 1:2), which two layers cannot hold"
            ),
        ),
        (
            one("a|b|c", (0, 2, "X"), (1, 3, "Y")),
            (
                "sentence 0: 'a b' (X, words 0:2) crosses 'b c' (Y, words 1:3), "
                "which two layers cannot hold"
            ),
        ),
        (one("a\tb"), 'sentence 0: word 0 is "a\\tb", which a column cannot hold'),
        (Document("", id="a"), "the document has no sentence, which this format cannot hold"),
        (
            Document.from_rows([WordRow("a"), WordRow([])], id="a"),
            "sentence 1: the sentence is empty, which this format cannot hold",
        ),
        (
            Document.from_rows([WordRow("a", metadata={"source": "a\rb"})], id="a"),
            'sentence 0: source is "a\\rb", which a comment line cannot hold',
        ),
    ],
)
def test_what_two_layers_cannot_represent_is_refused(
    tmp_path: Path, document: Document, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        write([document], tmp_path / "out.tsv")
    assert str(caught.value) == f"document 'a': {message}"
    assert not list(tmp_path.iterdir())
