"""Error messages for documents that cannot be paired."""

from __future__ import annotations

import pytest

from spandet.errors import MismatchError
from spandet.evaluation import compare, evaluate
from spandet.evaluation.alignment import aligned
from spandet.text import Document

Ids = list[str | None]


def documents(ids: Ids) -> list[Document]:
    return [Document("x", id=name) for name in ids]


def refused(**streams: Ids) -> str:
    """The error of reading all streams."""
    with pytest.raises(MismatchError) as error:
        list(aligned({name: documents(ids) for name, ids in streams.items()}))
    return str(error.value)


def differing(gold: Document, predicted: Document) -> str:
    with pytest.raises(MismatchError) as error:
        evaluate([gold], [predicted])
    return str(error.value)


def test_one_stream_goes_on_after_the_others() -> None:
    assert refused(gold=["a"], a=["a", "b"]) == "document 'b' is in a but not in gold"
    assert refused(gold=["a", "b"], a=["a"]) == "document 'b' is in gold but not in a"
    assert refused(gold=["a", "b", "c", "d"], a=["a"]) == (
        "document 'b' is in gold but not in a (and 2 more without a counterpart)"
    )
    assert refused(gold=["a", "b", "c"], a=["a"], b=["c", "a"]) == (
        "document 'c' is in b and gold but not in a (and 1 more without a counterpart)"
    )


def test_one_stream_goes_on_where_order_decides() -> None:
    why = "documents (paired by order, because not all files have ids)"
    assert refused(gold=["a"], a=[None, None]) == (
        f"document 2 is in a but not in gold, which ends after 1 {why}"
    )
    assert refused(gold=["a", "b"], a=[None]) == (
        f"document 2 ('b') is in gold but not in a, which ends after 1 {why}"
    )
    assert refused(gold=[None], a=["a", "b"], b=[None, None]) == (
        f"document 2 ('b') is in a but not in gold, which ends after 1 {why}"
    )


def test_ids_that_come_and_go() -> None:
    expected = "expected an id on all documents or on none"
    assert refused(gold=["a", None], a=["a", "b"]) == (
        f"gold: document 2 has no id, but the documents before have an id; {expected}"
    )
    assert refused(gold=["a", "b"], a=["a", None]) == (
        f"a: document 2 has no id, but the documents before have an id; {expected}"
    )
    assert refused(gold=["a", "b"], a=[None, "b"]) == (
        f"a: document 2 has the id 'b', but the documents before have none; {expected}"
    )


def test_an_id_twice_before_its_partner() -> None:
    assert refused(gold=["a", "a"], a=["b", "c"]) == (
        "gold: the id 'a' occurs twice before its counterpart; "
        "expected every id once, or the same order in all files"
    )


def test_documents_are_counted_from_one() -> None:
    same, other = Document("x"), Document("y")
    for a, b, side in ((other, same, "system A"), (same, other, "system B")):
        with pytest.raises(MismatchError) as error:
            compare([same, same], [same, a], [same, b])
        assert str(error.value) == (
            "document 2: the texts differ from visible character 1 on: "
            f"gold has 'x', {side} has 'y'"
        )


def test_twelve_characters_around_the_first_that_differs_are_shown() -> None:
    left, right = "abcdefghijklm", "nopqrstuvwxyz"
    for cut, shown in (
        (13, "…'bcdefghijklm!nopqrstuvwx'…"),
        (12, "'bcdefghijklm!nopqrstuvwx'…"),
        (1, "'m!nopqrstuvwx'…"),
    ):
        gold = Document(f"{left[-cut:]}!{right}")
        other = Document(gold.text.replace("!", "?"))
        assert differing(gold, other) == (
            f"document 1: the texts differ from visible character {cut + 1} on: "
            f"gold has {shown}, predicted has {shown.replace('!', '?')}"
        )
    short = Document(f"!{right[:11]}", id="d")
    assert differing(short, Document("?")) == (
        "document 'd': the texts differ from visible character 1 on: "
        "gold has '!nopqrstuvwx', predicted has '?'"
    )


def test_a_text_that_ends_is_shown_by_its_end() -> None:
    assert differing(Document("abcdefghijklmno"), Document("abcdefghijklmno p")) == (
        "document 1: the texts differ from visible character 16 on: "
        "gold has its end after 'defghijklmno', predicted has …'efghijklmno p'"
    )
