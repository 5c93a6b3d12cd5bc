"""Sentences with their context."""

from __future__ import annotations

import pytest

from spandet.encoding import Example, examples_of
from spandet.text import Document, WordRow

ROWS = [
    WordRow(["a", "b"], before=["p", "q"], after=["not this"]),
    WordRow([], before=["nor", "this"]),
    WordRow(["c", "d", "e"], tags=["X", "Y", "Z"], after=["r", "s"]),
]


def test_neighbours_are_context_and_the_source_goes_on_at_the_edges() -> None:
    document = Document.from_rows(ROWS)
    assert examples_of(document, context_words=3) == [
        Example(("a", "b"), left=("p", "q"), right=("c", "d", "e")),
        Example((), left=("q", "a", "b"), right=("c", "d", "e")),
        Example(("c", "d", "e"), ("X", "Y", "Z"), left=("q", "a", "b"), right=("r", "s")),
    ]


def test_without_context_there_are_only_the_words() -> None:
    examples = examples_of(Document.from_rows(ROWS), context_words=0)
    assert [example.words for example in examples] == [("a", "b"), (), ("c", "d", "e")]
    assert not any(example.left or example.right for example in examples)


def test_raw_text_is_segmented_and_nothing_gives_nothing() -> None:
    assert examples_of(Document(""), context_words=5) == []
    (example,) = examples_of(Document("IL-2 binds"), context_words=5)
    assert example.words == ("IL-2", "binds")


def test_tags_must_match_the_words() -> None:
    with pytest.raises(ValueError, match="2 words, but 1 tags"):
        Example(("a", "b"), ("X",))
