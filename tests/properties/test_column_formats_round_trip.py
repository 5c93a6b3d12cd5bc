"""Round trips through CoNLL, GermEval and CoNLL-2012, which refuse what they cannot store."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import Document, Entity, WordRow, WordSpan
from support.strategies import LABELS, WORDS, word_rows

CONLL = ["conll", "conll-iob1", "conll-bioes", "conll-bmes"]
NO_SCORES = st.none()
PLAIN_LABELS = st.sampled_from(["X", "Y", "cell-type", "B-X", "Ünïcode", "O"])
# Only tabs, spaces and line ends separate words; other white space may be part of a word.
ODD_WORDS = WORDS | st.sampled_from(["#", "\ufeff", "\u00a0", "a\u2028", "\x1c", "(", "-X-", "O"])
ONE_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8)


@st.composite
def flat_rows(draw: st.DrawFn) -> WordRow:
    """A sentence with words, whose entities do not overlap and come from left to right."""
    row = draw(word_rows(words=ODD_WORDS, min_words=1))
    cuts = sorted(draw(st.sets(st.integers(0, len(row.words)), max_size=6)))
    entities = [
        Entity(WordSpan(start, end), draw(PLAIN_LABELS))
        for start, end in pairwise(cuts)
        if draw(st.booleans())
    ]
    return WordRow(row.words, entities, row.tags)


@st.composite
def flat_documents(draw: st.DrawFn) -> Document:
    """A document of any number of such sentences, none included."""
    rows = draw(st.lists(flat_rows(), max_size=3))
    return Document.from_rows(rows, id=draw(st.none() | ONE_LINE))


def round_trip(documents: list[Document], name: str) -> list[Document]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(documents, path, name)
        return list(read(path, name))


def check_refused(document: Document, name: str) -> None:
    with pytest.raises(FormatError, match=r"document 0: sentence 0: .*cannot hold"):
        round_trip([document], name)


def held(document: Document) -> Counter[Entity[WordSpan]]:
    (row,) = document.rows()
    return Counter(row.entities)


@pytest.mark.parametrize("name", CONLL)
@given(documents=st.lists(flat_documents(), max_size=4))
@settings(max_examples=60)
def test_conll_keeps_documents_sentences_words_tags_and_entities(
    name: str, documents: list[Document]
) -> None:
    assert round_trip(documents, name) == documents


@pytest.mark.parametrize("name", CONLL)
@given(row=word_rows(words=st.just("w"), labels=LABELS, scores=NO_SCORES, min_words=1))
@settings(max_examples=60)
def test_conll_refuses_overlaps_and_labels_with_spaces_and_nothing_else(
    name: str, row: WordRow
) -> None:
    overlap = any(a.span.overlaps(b.span) for a, b in combinations(row.entities, 2))
    spaced = any(" " in entity.label for entity in row.entities)
    document = Document.from_rows([row])
    if overlap or spaced:
        check_refused(document, name)
    else:
        (back,) = round_trip([document], name)
        assert held(back) == held(document)


@given(
    rows=st.lists(flat_rows(), min_size=1, max_size=4),
    sources=st.lists(
        st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")),
        min_size=4,
        max_size=4,
    ),
)
@settings(max_examples=60)
def test_germeval_keeps_words_entities_and_sources(
    rows: list[WordRow], sources: list[str | None]
) -> None:
    documents = [
        Document.from_rows(
            [WordRow(r.words, r.entities, metadata={} if source is None else {"source": source})]
        )
        for r, source in zip(rows, sources, strict=False)
    ]
    assert round_trip(documents, "germeval") == documents


@given(row=word_rows(words=st.just("w"), scores=NO_SCORES, min_words=1))
@settings(max_examples=150)
def test_germeval_refuses_crossings_and_third_layers_and_nothing_else(row: WordRow) -> None:
    crossing = any(a.span.crosses(b.span) for a, b in combinations(row.entities, 2))
    depth = [
        sum(one.span.start <= word < one.span.end for one in row.entities)
        for word in range(len(row.words))
    ]
    document = Document.from_rows([WordRow(row.words, row.entities)])
    if crossing or max(depth) > 2:
        check_refused(document, "germeval")
    else:
        (back,) = round_trip([document], "germeval")
        assert held(back) == held(document)
        assert round_trip([back], "germeval") == [back]  # reading sorts the entities


def brackets(row: WordRow) -> list[str]:
    """The eleventh column of CoNLL-2012, written word by word."""
    cells = []
    for word in range(len(row.words)):
        opening = [one for one in row.entities if one.span.start == word]
        closing = [one for one in row.entities if one.span.end == word + 1]
        opening.sort(key=lambda one: -one.span.end)
        cells.append("".join(f"({one.label}" for one in opening) + "*" + ")" * len(closing))
    return cells


@given(
    st.lists(
        word_rows(words=WORDS, labels=PLAIN_LABELS, scores=NO_SCORES, min_words=1), max_size=3
    ),
    st.sampled_from(["\t", " ", "   "]),
)
@settings(max_examples=60)
def test_conll2012_reads_the_entities_of_brackets(rows: list[WordRow], separator: str) -> None:
    laminar = []
    lines = ["#begin document (n/1); part 007"]
    for row in rows:
        kept: list[Entity[WordSpan]] = []
        for one in row.entities:
            if not any(one.span.crosses(other.span) for other in kept):
                kept.append(one)
        kept.sort(key=lambda one: (one.span.start, -one.span.end))
        tags = row.tags or ["-"] * len(row.words)
        laminar.append(WordRow(row.words, kept, tags))
        for word, tag, cell in zip(row.words, tags, brackets(laminar[-1]), strict=True):
            lines.append(separator.join(["n/1", "7", "0", word, tag, *["-"] * 5, cell, "-"]))
        lines.append("")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.gold_conll"
        path.write_bytes("\n".join([*lines, "#end document"]).encode())
        assert list(read(path)) == [Document.from_rows(laminar, id="n/1/007")]
