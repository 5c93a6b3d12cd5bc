"""Round trips through DocBin: texts, words, sentences, tags, entities, scores, ids, metadata."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import Document
from support.strategies import JSON, raw_documents, word_rows, worded_documents

pytest.importorskip("spacy")


def word_bounds(document: Document) -> list[tuple[int, int]]:
    return [
        (start, start + len(word))
        for sentence in document.sentences
        for start, word in zip(sentence.starts, sentence.words, strict=True)
    ]


def round_trip(documents: list[Document]) -> list[Document]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.spacy"
        write(documents, path)
        return list(read(path))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A pre-tokenised document without empty sentences."""
    drawn = draw(worded_documents(rows=word_rows(min_words=1)))
    return replace(drawn, metadata=draw(JSON))


@given(st.lists(documents(), max_size=4))
@settings(max_examples=50)
def test_docbin_keeps_words_sentences_and_entities(written: list[Document]) -> None:
    assert round_trip(written) == written


@given(raw_documents(discontinuous=False))
@settings(max_examples=50)
def test_docbin_keeps_raw_text_exactly_and_refuses_entities_that_cut_words(
    document: Document,
) -> None:
    bare = replace(document, entities=())
    (back,) = round_trip([bare])
    assert (back.text, back.sentences) == (bare.text, bare.sentences)
    if any(
        start < border < end
        for start, end in word_bounds(bare)
        for entity in document.entities
        for border in (entity.span.start, entity.span.end)
    ):
        with pytest.raises(FormatError, match="does not begin and end at word boundaries"):
            round_trip([document])
