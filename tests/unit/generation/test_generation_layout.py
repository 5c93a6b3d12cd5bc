"""Layout of generated words as text."""

from __future__ import annotations

import pytest

from spandet.generation.documents import Layout, spelled
from spandet.generation.grammar import Mark, Phrase
from spandet.text import CharSpan, Entity


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("the end .", "The end ."),
        ("a old a new a union", "An old a new a union"),
        ("he saw a IL-2 receptor", "He saw an IL-2 receptor"),
        ("he said “ we know ”", "He said “ We know ”"),
        ("mRNA was", "mRNA was"),
        ("p53 was", "p53 was"),
        ("dose-free mice", "Dose-free mice"),
    ],
)
def test_spelling(words: str, expected: str) -> None:
    assert spelled(words.split()) == tuple(expected.split())


def test_texts_look_like_texts() -> None:
    layout = Layout()
    layout.add(_phrase("A title", Mark(1, 2, "x")))
    layout.add(
        _phrase("Mr . Hall 's cat ( $ 5 ) , “ Tom ” : who ?", Mark(0, 5, "a"), Mark(2, 3, "b"))
    )
    layout.add(_phrase("It ; slept !"))
    document = layout.document("d-1")
    assert document.text == "A title\n\nMr. Hall's cat ($5), “Tom”: who? It; slept!"
    assert document.id == "d-1"
    assert [document.text_of(entity) for entity in document.entities] == [
        "title",
        "Mr. Hall's cat",
        "Hall",
    ]
    assert document.entities[0] == Entity(CharSpan(2, 7), "x")
    for sentence in document.sentences:
        for word, start in zip(sentence.words, sentence.starts, strict=True):
            assert document.text[start : start + len(word)] == word


def test_parts_of_an_entity_become_fragments() -> None:
    layout = Layout()
    layout.add(_phrase("Left ( or right ) arm", Mark(0, 6, "x", ((0, 1), (5, 6)))))
    document = layout.document("d-2")
    assert document.text_of(document.entities[0]) == "Left … arm"
    pieces = [CharSpan(0, 4), CharSpan(16, 19)]
    assert document.entities == (Entity.from_fragments(pieces, "x"),)


def _phrase(text: str, *marks: Mark) -> Phrase:
    words = tuple(text.split())
    return Phrase(words, ("NN",) * len(words), marks)
