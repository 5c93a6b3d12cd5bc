"""The data model: spans, entities, sentences, documents."""

from __future__ import annotations

import pytest

from spandet.errors import FormatError
from spandet.text import CharSpan, Document, Entity, Sentence, WordRow, WordSpan


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 3), (-1, 2)])
def test_a_span_needs_a_start_before_its_end(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=rf"WordSpan needs 0 <= start < end, got {start}:{end}"):
        WordSpan(start, end)


def test_spans_of_different_units_are_never_equal() -> None:
    assert len({WordSpan(0, 1), CharSpan(0, 1)}) == 2


def test_nesting_touching_and_crossing() -> None:
    outer, inner, next_, across = (CharSpan(*pair) for pair in [(0, 4), (1, 3), (4, 6), (2, 6)])
    assert outer.contains(inner)
    assert outer.contains(outer)
    assert not inner.contains(outer)
    assert not outer.overlaps(next_)
    assert outer.crosses(across)
    assert across.crosses(outer)
    assert not outer.crosses(inner)
    assert len(across) == 4


def test_fragments_are_sorted_and_joined_where_they_touch() -> None:
    fragments = [CharSpan(8, 9), CharSpan(0, 2), CharSpan(2, 4), CharSpan(1, 3)]
    entity = Entity.from_fragments(fragments, "X")
    assert entity.span == CharSpan(0, 9)
    assert entity.fragments == (CharSpan(0, 4), CharSpan(8, 9))
    assert entity.spans == entity.fragments
    assert entity.pieces == entity.spans  # the old name
    whole = Entity.from_fragments([CharSpan(0, 2), CharSpan(2, 4)], "X")
    assert whole == Entity(CharSpan(0, 4), "X")
    assert whole.spans == (CharSpan(0, 4),)


@pytest.mark.parametrize(
    "fragments", [[(0, 2), (1, 9)], [(3, 9), (0, 2)], [(0, 2), (4, 8)], [(0, 9)], [(0, 4), (4, 9)]]
)
def test_inconsistent_fragments_are_refused(fragments: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="fragments"):
        Entity(CharSpan(0, 9), "X", None, tuple(CharSpan(*pair) for pair in fragments))
    with pytest.raises(ValueError, match="at least one"):
        Entity.from_fragments([], "X")


@pytest.fixture
def sentence() -> Sentence:
    """The words of "  IL-2 gene, on." at their places; "gene" and "," touch."""
    return Sentence(("IL-2", "gene", ",", "on", "."), (2, 7, 11, 13, 15))


def test_words_and_characters_translate(sentence: Sentence) -> None:
    assert sentence.span == CharSpan(2, 16)
    assert sentence.chars_of(WordSpan(0, 2)) == CharSpan(2, 11)
    assert sentence.words_of(CharSpan(2, 11)) == WordSpan(0, 2)


@pytest.mark.parametrize(
    ("chars", "touched"),
    [
        ((2, 3), (0, 1)),
        ((5, 8), (0, 2)),
        ((6, 7), None),
        ((0, 2), None),
        ((0, 3), (0, 1)),
        ((10, 12), (1, 3)),
        ((15, 99), (4, 5)),
        ((16, 99), None),
        ((12, 13), None),
    ],
)
def test_spans_that_cut_words(
    sentence: Sentence, chars: tuple[int, int], touched: tuple[int, int] | None
) -> None:
    expected = None if touched is None else WordSpan(*touched)
    assert sentence.words_touching(CharSpan(*chars)) == expected
    assert sentence.words_of(CharSpan(*chars)) is None


def test_an_empty_sentence_has_no_span() -> None:
    empty = Sentence((), ())
    assert empty.span is None
    assert empty.words_touching(CharSpan(0, 5)) is None


def test_a_sentence_counts_its_words() -> None:
    with pytest.raises(ValueError, match="2 words, but 1 starts"):
        Sentence(("a", "b"), (0,))
    with pytest.raises(ValueError, match="1 words, but 2 tags"):
        Sentence(("a",), (0,), ("X", "Y"))


def test_an_entity_must_lie_in_the_text() -> None:
    with pytest.raises(ValueError, match="ends after the text's 3 characters"):
        Document("abc", (Entity(CharSpan(1, 4), "X"),))


def test_raw_text_is_split_on_access() -> None:
    document = Document("One two. Three four.")
    assert document.own_sentences is None
    assert [sentence.words for sentence in document.sentences] == [
        ("One", "two", "."),
        ("Three", "four", "."),
    ]


def test_rows_become_text_and_rows_again() -> None:
    rows = [
        WordRow(
            ("IL-2", "gene"), [Entity(WordSpan(0, 2), "DNA"), Entity(WordSpan(0, 2), "X", 0.5)]
        ),
        WordRow(()),
        WordRow(("It", "works"), [Entity(WordSpan(1, 2), "Y")], ("PRP", "VBZ"), ("a",), ("b",)),
    ]
    document = Document.from_rows(rows, id="d", metadata={"k": 1})
    assert document.text == "IL-2 gene\n\nIt works"
    assert document.text_of(document.entities[2]) == "works"
    back = list(document.rows())
    assert [list(row.entities) for row in back] == [list(row.entities) for row in rows]
    assert [tuple(row.words) for row in back] == [row.words for row in rows]
    assert (back[2].tags, back[2].before, back[2].after) == (("PRP", "VBZ"), ("a",), ("b",))


def test_entities_that_match_no_words_are_errors() -> None:
    cut = Entity(CharSpan(1, 4), "X")
    over = Entity(CharSpan(0, 7), "Y")
    fine = Entity(CharSpan(0, 4), "Z")
    rows = [WordRow(("IL-2",)), WordRow(("ab", "c"))]
    document = Document.from_rows(rows)
    document = Document(document.text, (cut, over, fine), own_sentences=document.sentences)
    fitting, misfits = document.entities_in_words()
    assert fitting == [[Entity(WordSpan(0, 1), "Z")], []]
    assert misfits == [cut, over]
    with pytest.raises(FormatError, match=r"entity 'L-2' \(X, characters 1:4\) does not begin"):
        list(document.rows())
    assert Document("   ", (Entity(CharSpan(0, 1), "X"),)).entities_in_words()[1]


def test_a_gap_between_words_is_kept_and_shown() -> None:
    arm = Entity.from_fragments([CharSpan(0, 4), CharSpan(14, 17)], "part")
    document = Document("left or right arm", (arm,))
    assert document.text_of(arm) == "left … arm"
    (row,) = document.rows()
    assert row.entities == [Entity.from_fragments([WordSpan(0, 1), WordSpan(3, 4)], "part")]
