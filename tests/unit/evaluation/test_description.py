from __future__ import annotations

import json

from spandet.evaluation import describe
from spandet.text import CharSpan, Document, Entity

TEXT = "left and right lung cancer of the old patient"


def whole(start: int, end: int, label: str) -> Entity[CharSpan]:
    return Entity(CharSpan(start, end), label)


def test_a_small_corpus_by_hand() -> None:
    lung = Entity.from_fragments([CharSpan(0, 4), CharSpan(15, 19)], "organ")
    document = Document(
        TEXT,
        (
            lung,
            whole(9, 19, "organ"),
            whole(15, 26, "disease"),
            whole(15, 26, "disease"),
            whole(15, 26, "finding"),
            whole(34, 45, "person"),
        ),
        id="report 1",
    )
    plain = describe([document, Document("", id="empty")]).to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["documents"] == 2
    assert plain["words"] == 9
    assert plain["entities"] == 6
    assert plain["labels"] == {"disease": 2, "organ": 2, "finding": 1, "person": 1}
    assert plain["nested"] == 2  # "left … lung" holds "right lung" by its envelope
    assert plain["nested_share"] == 2 / 6
    assert plain["depths"] == {"1": 5, "2": 1}
    assert plain["lengths"] == {"1-4": 6, "5-9": 0, "10+": 0}
    assert plain["exact_lengths"] == {"2": 6}
    assert plain["crossing_pairs"] == 4
    assert plain["duplicates"] == 1
    assert plain["same_span_pairs"] == 1
    assert plain["discontinuous"] == 1
    assert plain["longest"] == {
        "words": 2,
        "label": "organ",
        "document": "report 1",
        "text": "left … lung",
    }


def test_an_entity_between_words_counts_as_one_word() -> None:
    document = Document("a  b", (whole(1, 3, "space"),))
    assert describe([document]).exact_lengths == {1: 1}


def test_a_word_with_two_fragments_counts_once() -> None:
    pieces = [CharSpan(0, 1), CharSpan(2, 3), CharSpan(4, 7)]
    document = Document("abcd efg", (Entity.from_fragments(pieces, "x"),))
    assert describe([document]).exact_lengths == {2: 1}


def test_the_longest_entity_is_the_first_of_equals() -> None:
    first = Document(TEXT, (whole(0, 14, "x"), whole(30, 45, "y")))
    second = Document(TEXT, (whole(15, 29, "z"),))
    longest = describe([first, second]).longest
    assert longest is not None
    assert (longest.words, longest.document, longest.label) == (3, "1", "x")
    assert str(longest) == "3 words, x, in 1: left and right"


def test_crossing_pairs_of_many_entities_are_counted_fast() -> None:
    size = 20_000
    entities = tuple(whole(i, i + 3, "x") for i in range(size))
    document = Document("x" * (size + 3), entities)
    assert describe([document]).crossing_pairs == (size - 1) + (size - 2)
