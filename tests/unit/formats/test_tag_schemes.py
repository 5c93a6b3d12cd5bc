"""Tags to entities and back: examples. The laws are in tests/properties."""

from __future__ import annotations

import pytest

from spandet.errors import FormatError
from spandet.formats.tag_schemes import SCHEMES, decode, encode, layers
from spandet.text import Entity, WordRow, WordSpan


def error(word: int, what: str) -> FormatError:
    return FormatError(what, f"word {word}")


def found(tags: str) -> list[tuple[int, int, str]]:
    return [(one.span.start, one.span.end, one.label) for one in decode(tags.split(), error)]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", []),
        ("B-X I-X O B-Y", [(0, 2, "X"), (3, 4, "Y")]),
        ("B-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),
        (
            "O I-X I-X O I-X",
            [(1, 3, "X"), (4, 5, "X")],
        ),  # IOB1, or BIO with an error that conlleval accepts
        ("I-X B-X B-X I-X I-Y", [(0, 1, "X"), (1, 2, "X"), (2, 4, "X"), (4, 5, "Y")]),  # IOB1
        ("B-Y I-X", [(0, 1, "Y"), (1, 2, "X")]),
        ("S-X B-X I-X E-X S-X", [(0, 1, "X"), (1, 4, "X"), (4, 5, "X")]),  # BIOES
        ("B-X M-X M-X E-X B-X E-X", [(0, 4, "X"), (4, 6, "X")]),  # BMES
        ("U-X B-Y I-Y L-Y", [(0, 1, "X"), (1, 4, "Y")]),  # BILOU
        ("B-cell-line I-cell-line", [(0, 2, "cell-line")]),
    ],
)
def test_every_scheme_is_read(tags: str, expected: list[tuple[int, int, str]]) -> None:
    assert found(tags) == expected


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("O PER", 'word 1: the tag is "PER", expected O, or one of B I E S M L U with a dash'),
        ("B-X b-X", 'word 1: the tag is "b-X"'),
        ("B-", 'word 0: the tag is "B-"'),
        ("BI-X", 'word 0: the tag is "BI-X"'),
        ("O E-X", "word 1: the tag is E-X, but no X entity is open here"),
        ("B-Y E-X", "word 1: the tag is E-X, but no X entity is open here"),
        ("S-X I-X", "word 1: the tag is I-X, but no X entity is open here"),
        ("B-X M-X O", "word 2: the tag is O, but the X entity before has no end"),
        ("B-X S-Y", "word 1: the tag is S-Y, but the X entity before has no end"),
        ("S-X B-X I-X", "word 2: the sentence ends, but its last X entity does not"),
    ],
)
def test_invalid_tags_are_errors(tags: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        found(tags)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("bio", "B-X B-X B-X I-X O B-Y I-Y I-Y"),
        ("iob1", "I-X B-X B-X I-X O I-Y I-Y I-Y"),
        ("bioes", "S-X S-X B-X E-X O B-Y I-Y E-Y"),
        ("bmes", "S-X S-X B-X E-X O B-Y M-Y E-Y"),
    ],
)
def test_every_scheme_is_written(scheme: str, expected: str) -> None:
    bounds = [(0, 1, "X"), (1, 2, "X"), (2, 4, "X"), (5, 8, "Y")]
    entities = [Entity(WordSpan(start, end), label) for start, end, label in bounds]
    assert encode(8, entities, SCHEMES[scheme]) == expected.split()


def test_layers_are_the_depths_of_nesting() -> None:
    spans = [(1, 2, "inner"), (0, 3, "outer"), (3, 4, "alone"), (0, 3, "again")]
    row = WordRow("abcd", [Entity(WordSpan(a, b), label) for a, b, label in spans])
    outer, inner, third = layers(row, most=3, holder="three")
    assert [one.label for one in outer] == ["outer", "alone"]
    assert [one.label for one in inner] == ["again"]
    assert [one.label for one in third] == ["inner"]
