"""Laws of lossless formats, and of all readers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import FORMATS, read, write
from spandet.formats.jsonl import record_of
from spandet.text import Document, WordRow
from support.strategies import raw_documents, word_rows, worded_documents

ANY_TEXT = st.text(max_size=40)  # lone surrogates and control characters included
READABLE = [name for name, row in FORMATS.items() if row.read is not None]


def round_trip(documents: list[Document], name: str, suffix: str = "") -> list[Document]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(documents, path, name)
        return list(read(path, name))


@given(st.lists(raw_documents(text=ANY_TEXT) | worded_documents(), max_size=4))
def test_native_jsonl_loses_nothing(documents: list[Document]) -> None:
    assert round_trip(documents, "jsonl") == documents
    assert round_trip(documents, "jsonl", ".gz") == documents


def merged(documents: list[Document]) -> list[Document]:
    """Consecutive documents with one id are one document in the tokens formats."""
    unique = {document.id: document for document in documents if document.id is not None}
    return [
        document for document in documents if document.id is None or document is unique[document.id]
    ]


def grouped(document: Document) -> Document:
    """The tokens formats keep entities by sentence."""
    own = [s.span.start if s.span else -1 for s in document.sentences]

    def place(start: int) -> int:
        return max((i for i, begin in enumerate(own) if 0 <= begin <= start), default=0)

    entities = sorted(document.entities, key=lambda entity: place(entity.span.start))
    return Document(
        document.text, tuple(entities), document.id, document.metadata, document.own_sentences
    )


@pytest.mark.parametrize("name", ["tokens-jsonl", "tokens-json"])
@given(
    st.lists(worded_documents(ids=st.text("abc", min_size=1)), max_size=4)
    | st.lists(worded_documents(ids=st.none(), max_sentences=1), max_size=4)
)
def test_tokens_formats_keep_words_entities_and_documents(
    name: str, documents: list[Document]
) -> None:
    kept = [grouped(document) for document in merged(documents)]
    assert round_trip(kept, name) == kept


@given(word_rows(min_words=1))
def test_word_spans_round_trip_through_characters(row: WordRow) -> None:
    (back,) = Document.from_rows([row]).rows()
    assert (back.words, list(back.entities), back.tags) == (row.words, list(row.entities), row.tags)


@given(
    st.lists(st.lists(st.tuples(st.integers(-1, 12), st.integers(-1, 12)), max_size=4), max_size=3)
)
def test_words_in_any_order_are_refused_or_read_back_as_they_were(
    words: list[list[tuple[int, int]]],
) -> None:
    """A bad record is skipped; the other records are read."""
    good = {"text": "IL-2 gene ab", "entities": []}
    record = good | {"sentences": [{"words": [list(pair) for pair in own]} for own in words]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in (good, record, good)))
        corpus = read(path, skip_bad=True)
        back = [record_of(document) for document in corpus]
    flat = [place for own in words for pair in own for place in pair]
    right = all(0 <= a < b <= 12 for own in words for a, b in own) and flat == sorted(flat)
    assert back == ([good, record, good] if right else [good, good])
    assert corpus.skips == (not right)


@pytest.mark.parametrize("name", READABLE)
@given(
    data=st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.text('{}[]":,<>/tokens=entities 0123456789\n\t-BIO#', max_size=80).map(str.encode)
)
@settings(max_examples=150)
def test_any_bytes_give_documents_or_a_format_error(name: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        corpus = read(path, name, skip_bad=True)
        errors: list[FormatError] = []
        try:
            assert all(isinstance(document, Document) for document in corpus)
        except FormatError as error:
            errors.append(error)
        assert all(folder in str(error) for error in errors + corpus.skipped)
