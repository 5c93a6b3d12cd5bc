"""Sentences with their context."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spandet.encoding import Example, examples_of
from spandet.encoding.examples import passages, together
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


def test_the_next_sentences_are_context_and_the_source_counts_as_one() -> None:
    document = Document.from_rows([*ROWS, WordRow(["f"], after=["r", "s"])])

    def read(words: int) -> list[Example]:
        return examples_of(document, context_words=words, neighbour_sentences=1)

    assert read(2) == [
        Example(("a", "b"), left=("p", "q"), right=("c", "d")),
        Example((), left=("a", "b"), right=("c", "d")),
        Example(("c", "d", "e"), ("X", "Y", "Z"), left=("a", "b"), right=("f",)),
        Example(("f",), left=("d", "e"), right=("r", "s")),
    ]
    assert read(0) == examples_of(document, context_words=0)


def test_several_sentences_on_each_side_are_context() -> None:
    document = Document.from_rows([*ROWS, WordRow(["f"], after=["r", "s"])])
    assert examples_of(document, context_words=9, neighbour_sentences=2) == [
        Example(("a", "b"), left=("p", "q"), right=("c", "d", "e", "f")),
        Example((), left=("p", "q", "a", "b"), right=("c", "d", "e", "f")),
        Example(("c", "d", "e"), ("X", "Y", "Z"), left=("p", "q", "a", "b"), right=("f", "r", "s")),
        Example(("f",), left=("a", "b", "c", "d", "e"), right=("r", "s")),
    ]
    nearest = examples_of(document, context_words=3, neighbour_sentences=2)
    assert nearest[0].right == ("c", "d", "e")
    assert nearest[3].left == ("c", "d", "e")


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), max_size=3),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(1, 4),
)
def test_neighbours_equal_those_of_the_whole_source(
    own: list[int], before: list[int], after: list[int], count: int
) -> None:
    """A document with the sentences around it has the context of the whole source."""
    lengths = [*before, *own, *after]
    sentences = [tuple(f"{i}.{j}" for j in range(n)) for i, n in enumerate(lengths)]
    chosen = slice(len(before), len(before) + len(own))
    document = Document.from_rows([WordRow(words) for words in sentences[chosen]])
    first, *rest = document.sentences
    first = replace(
        first,
        before=tuple(chain.from_iterable(sentences[: len(before)])),
        before_lengths=tuple(before),
    )
    inner = [first, *rest]
    inner[-1] = replace(
        inner[-1],
        after=tuple(chain.from_iterable(sentences[chosen.stop :])),
        after_lengths=tuple(after),
    )
    document = replace(document, own_sentences=tuple(inner))
    found = examples_of(document, context_words=99, neighbour_sentences=count)
    for number, example in enumerate(found, start=len(before)):
        left = [words for words in sentences[:number] if words][-count:]
        right = [words for words in sentences[number + 1 :] if words][:count]
        assert example.words == sentences[number]
        assert example.left == tuple(chain.from_iterable(left))
        assert example.right == tuple(chain.from_iterable(right))


def test_raw_text_is_segmented_and_nothing_gives_nothing() -> None:
    assert examples_of(Document(""), context_words=5) == []
    (example,) = examples_of(Document("IL-2 binds"), context_words=5)
    assert example.words == ("IL-2", "binds")


def test_tags_must_match_the_words() -> None:
    with pytest.raises(ValueError, match="2 words, but 1 tags"):
        Example(("a", "b"), ("X",))


LENGTHS = st.lists(st.integers(0, 5), max_size=12)


def document_of(lengths: list[int]) -> Document:
    """Sentences of these lengths; all words are equal, so passages differ in lengths only."""
    return Document.from_rows([WordRow(["w"] * length) for length in lengths])


def test_sentences_of_a_passage_have_each_other_as_context() -> None:
    rows = [WordRow(["a", "b"], before=["no"]), WordRow(["c"])]
    document = Document.from_rows([*rows, WordRow(["d", "e"], tags=["X", "Y"])])
    assert examples_of(document, context_words=0, passage_words=4) == [
        Example(("a", "b"), right=("c",)),
        Example(("c",), left=("a", "b")),
        Example(("d", "e"), ("X", "Y")),
    ]


@given(LENGTHS, st.integers(1, 9))
def test_passages_are_as_long_as_they_may_be(lengths: list[int], most: int) -> None:
    found = [
        [len(sentence) for sentence in p] for p in passages(document_of(lengths).sentences, most)
    ]
    assert list(chain.from_iterable(found)) == lengths
    assert all(sum(passage) <= most or len(passage) == 1 for passage in found)
    for one, following in pairwise(found):
        assert sum(one) + following[0] > most


@given(LENGTHS, st.integers(1, 9), st.data())
def test_passages_do_not_depend_on_earlier_passages(
    lengths: list[int], most: int, data: st.DataObject
) -> None:
    found = list(passages(document_of(lengths).sentences, most))
    first = data.draw(st.integers(0, len(found)))
    rest = list(chain.from_iterable(found[first:]))
    assert list(passages(rest, most)) == found[first:]


@given(st.lists(LENGTHS, max_size=3), st.integers(1, 9))
def test_sentences_of_a_passage_are_grouped(documents: list[list[int]], most: int) -> None:
    words = iter(range(10**6))
    corpus = [
        Document.from_rows([WordRow([str(next(words)) for _ in range(n)]) for n in own if n])
        for own in documents
    ]
    examples = [e for d in corpus for e in examples_of(d, context_words=0, passage_words=most)]
    numbers = iter(range(len(examples)))
    expected = [[next(numbers) for _ in p] for d in corpus for p in passages(d.sentences, most)]
    assert together(examples) == expected
