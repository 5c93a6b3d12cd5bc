from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from spandet.errors import MismatchError
from spandet.evaluation import compare, evaluate
from spandet.evaluation.alignment import aligned
from spandet.text import CharSpan, Document, Entity


def documents(*names: str | None, text: str = "one two") -> list[Document]:
    return [Document(text, id=name) for name in names]


def paired(gold: list[Document], predicted: list[Document]) -> list[tuple[str | None, ...]]:
    rows = aligned({"gold": gold, "predicted": predicted})
    return [tuple(document.id for document in row) for row in rows]


def test_ids_find_each_other_in_any_order() -> None:
    gold = documents("a", "b", "c", "d")
    predicted = documents("c", "a", "d", "b")
    assert sorted(paired(gold, predicted)) == [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]


def test_a_repeated_id_in_the_same_order_is_no_problem() -> None:
    assert paired(documents("a", "a", "b"), documents("a", "a", "b")) == [
        ("a", "a"),
        ("a", "a"),
        ("b", "b"),
    ]


def test_without_ids_on_one_side_order_decides() -> None:
    assert paired(documents("a", "b"), documents(None, None)) == [("a", None), ("b", None)]


def test_three_streams_are_aligned() -> None:
    streams = {
        "gold": documents("a", "b", "c"),
        "A": documents("b", "c", "a"),
        "B": documents("c", "a", "b"),
    }
    rows = [tuple(str(document.id) for document in row) for row in aligned(streams)]
    assert sorted(rows) == [("a",) * 3, ("b",) * 3, ("c",) * 3]


def test_streams_in_order_are_read_in_lockstep() -> None:
    read = {"gold": 0, "predicted": 0}

    def stream(name: str) -> Iterator[Document]:
        for number in range(50):
            read[name] += 1
            yield Document("x", id=str(number))

    for number, _ in enumerate(aligned({name: stream(name) for name in read}), 1):
        assert read == {"gold": number, "predicted": number}
    assert read == {"gold": 50, "predicted": 50}


@pytest.mark.parametrize(
    ("gold", "predicted", "words"),
    [
        (["a", "b"], ["a"], r"document 'b' is in gold but not in predicted$"),
        (["b"], ["a", "b", "c"], r"document 'a' is in predicted but not in gold \(and 1 more"),
        ([None, None], [None], r"document 2 is in gold but not in predicted, which ends after 1"),
        ([None], [None] * 2, r"document 2 is in predicted but not in gold, which ends after 1"),
        (["a"], [], r"document 'a' is in gold but not in predicted$"),
        ([None], [], r"document 1 is in gold but not in predicted, which ends after 0 documents"),
        (["a", "b"], [None], r"document 2 \('b'\) is in gold but .*paired by order, because not"),
        (["a", "a", "b"], ["b", "x", "a"], r"gold: the id 'a' occurs twice before its counterpart"),
        (["a", "b", "a"], ["b", "c", "a"], r"gold: the id 'a' occurs twice before its counterpart"),
        (["a", None], ["a", "b"], r"gold: document 2 has no id, .* expected an id on all"),
        ([None, None], [None, "b"], r"predicted: document 2 has the id 'b', .* before have none"),
    ],
)
def test_documents_without_partner_are_refused(
    gold: list[str | None], predicted: list[str | None], words: str
) -> None:
    with pytest.raises(MismatchError, match=words):
        paired(documents(*gold), documents(*predicted))


@pytest.mark.parametrize(
    ("gold", "predicted", "words"),
    [
        (
            "NF-kappa B binds to the long promoter.",
            "NF-kappa B bind s to the short promoter.",
            (
                "visible character 20 on: gold has …'inds to the long promote'…, "
                "predicted has …'nd s to the short promot'…"
            ),
        ),
        (
            "one two",
            "one",
            "visible character 4 on: gold has 'one two', predicted has its end after 'one'",
        ),
        ("", "x", "visible character 1 on: gold has its end after '', predicted has 'x'"),
    ],
)
def test_differing_texts_are_shown(gold: str, predicted: str, words: str) -> None:
    with pytest.raises(MismatchError, match=f"document 'd7': the texts differ from {words}") as one:
        evaluate([Document(gold, id="d7")], [Document(predicted, id="d7")])
    assert "\n" not in str(one.value)


def test_a_document_without_id_is_named_by_number() -> None:
    with pytest.raises(MismatchError, match=r"^document 2: the texts differ"):
        evaluate([Document("a"), Document("b")], [Document("a"), Document("c")])


def test_the_system_that_differs_is_named() -> None:
    gold, other = [Document("a", id="x")], [Document("b", id="x")]
    with pytest.raises(MismatchError, match="system B has 'b'"):
        compare(gold, gold, other)
    with pytest.raises(MismatchError, match="document 'x' is in gold and system A but not in sys"):
        compare(gold, gold, [])


def test_another_spacing_is_scored_on_visible_characters() -> None:
    gold = Document("T cell , B cell .", (Entity(CharSpan(0, 6), "cell"),))
    predicted = Document("T  cell, B cell.", (Entity(CharSpan(0, 7), "cell"),))
    assert evaluate([gold], [predicted], resamples=0).micro.f1 == 1
    # The same text, however, is taken literally.
    longer = Document(gold.text, (Entity(CharSpan(0, 7), "cell"),))
    assert evaluate([gold], [longer], resamples=0).micro.f1 == 0


def test_a_gap_of_white_space_only_is_none_in_another_spacing() -> None:
    pieces = [CharSpan(0, 1), CharSpan(2, 6)]
    broken = Document("T\ncell here", (Entity.from_fragments(pieces, "cell"),))
    whole = Document("T cell  here", (Entity(CharSpan(0, 6), "cell"),))
    assert evaluate([whole], [broken], resamples=0).micro.f1 == 1


def test_shuffled_documents_have_the_same_scores() -> None:
    gold = [
        Document(f"word {n}", (Entity(CharSpan(0, 4 + n % 2), "x"),), id=str(n)) for n in range(30)
    ]
    predicted = [Document(one.text, (Entity(CharSpan(0, 4), "x"),), id=one.id) for one in gold]
    expected = evaluate(gold, predicted, resamples=50)
    random.Random(1).shuffle(predicted)
    shuffled = evaluate(gold, predicted, resamples=50)
    assert shuffled.micro == expected.micro
    assert shuffled.intervals == expected.intervals
