"""CoNLL-2012 columns, after their public description; the text is our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import read, write
from spandet.text import Document

NAME = "nw/own/00/own_0001"


def line(number: int, word: str, tag: str, name: str) -> str:
    return f"{NAME}   0   {number}   {word}   {tag}   *   -   -   -   -   {name}   *   (0)"


def part(number: str, *sentences: str) -> str:
    return f"#begin document ({NAME}); part {number}\n" + "\n".join(sentences) + "#end document\n"


def sentence(*words: tuple[str, str, str]) -> str:
    return "".join(line(number, *word) + "\n" for number, word in enumerate(words))


GENEVA = sentence(
    ("The", "DT", "(ORG*"),
    ("Bank", "NNP", "*"),
    ("of", "IN", "*"),
    ("Geneva", "NNP", "*)"),
    ("hired", "VBD", "*"),
    ("Zoe", "NNP", "(PERSON)"),
)
SAMPLE = part("000", GENEVA, sentence(("Why", "WRB", "*"), ("?", ".", "*"))) + part("001", GENEVA)


def corpus(folder: Path, text: str, name: str = "own.v4_gold_conll") -> list[Document]:
    (folder / name).write_bytes(text.encode())
    return list(read(folder / name))


def found(document: Document) -> list[tuple[str, str]]:
    return [(document.text_of(entity), entity.label) for entity in document.entities]


@pytest.mark.parametrize("name", ["own.v4_gold_conll", "own_conll", "own.v4_auto_conll"])
def test_each_part_is_a_document(tmp_path: Path, name: str) -> None:
    first, second = corpus(tmp_path, SAMPLE, name)
    assert (first.id, second.id) == (f"{NAME}/000", f"{NAME}/001")
    assert first.text == "The Bank of Geneva hired Zoe\nWhy ?"
    assert first.sentences[0].tags == ("DT", "NNP", "IN", "NNP", "VBD", "NNP")
    assert found(first) == [("The Bank of Geneva", "ORG"), ("Zoe", "PERSON")]
    assert second.text == "The Bank of Geneva hired Zoe"


def test_nested_brackets_are_read_outer_first(tmp_path: Path) -> None:
    words = [("a", "X", "(A(B(C*)"), ("b", "X", "*))"), ("c", "X", "(D(E))")]
    (document,) = corpus(tmp_path, part("000", sentence(*words)))
    assert found(document) == [("a b", "A"), ("a b", "B"), ("a", "C"), ("c", "D"), ("c", "E")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sentence(("a", "X", "*")), ":1: found a sentence, expected #begin document (NAME); part"),
        ("#end document\n", ':1: found "#end document", expected #begin document (NAME); part'),
        ("#begin document x\n", ':1: found "#begin document x", expected #begin document (NAME)'),
        (part("000", GENEVA)[:-14], f": the document {NAME}/000 has no end, expected #end doc"),
        (
            part("000", GENEVA)[:-14] + part("001"),
            f":8: the document {NAME}/000 has no end, expected #end document",
        ),
        (part("0", "a b c\n"), ":2: found 3 columns, expected at least 11"),
        (part("0", "# what\n"), ':2: found "# what", expected #end document'),
        (
            part("000", sentence(("a", "X", "(A*"), ("b", "X", "*"))),
            ":2: the A name that begins here has no end in its sentence",
        ),
        (
            part("000", sentence(("a", "X", "*"), ("b", "X", "*)"))),
            ':3: the name is "*)", but none is open to be closed',
        ),
        (
            part("000", sentence(("a", "X", "A"))),
            ':2: the name is "A", expected (LABEL*, *, *) or (LABEL)',
        ),
        (part("000", sentence(("a", "X", ")"))), ':2: the name is ")", expected (LABEL*'),
        (part("000", sentence(("a", "X", "(A"))), ':2: the name is "(A", expected (LABEL*'),
    ],
)
def test_errors_have_the_line_number(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        corpus(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/own.v4_gold_conll{message}")


def test_it_is_only_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="conll2012 can only be read"):
        write([], tmp_path / "x", "conll2012")
