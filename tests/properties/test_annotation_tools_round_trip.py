"""Round trips through doccano, Label Studio and Prodigy."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spandet.formats import read, write
from spandet.text import Document
from support.strategies import IDS, JSON, SCORES, TEXT, raw_documents, word_rows, worded_documents

ANY_IDS = st.none() | IDS | st.text(max_size=5) | st.integers(-9, 10**20).map(str)
UNSCORED = st.lists(
    raw_documents(text=TEXT, scores=st.none(), discontinuous=False, ids=ANY_IDS), max_size=4
)
SCORED = st.lists(
    raw_documents(text=TEXT, scores=SCORES, discontinuous=False, ids=ANY_IDS), max_size=4
)


def round_trip(documents: list[Document], name: str) -> list[Document]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(documents, path, name)
        return list(read(path, name))


@given(UNSCORED)
def test_doccano_keeps_raw_documents_without_scores(documents: list[Document]) -> None:
    assert round_trip(documents, "doccano") == documents


@given(SCORED)
def test_doccano_leaves_out_scores_and_nothing_else(documents: list[Document]) -> None:
    bare = [
        replace(
            document, entities=tuple(replace(entity, score=None) for entity in document.entities)
        )
        for document in documents
    ]
    assert round_trip(documents, "doccano") == bare


@given(UNSCORED | SCORED)
def test_label_studio_keeps_raw_documents(documents: list[Document]) -> None:
    assert round_trip(documents, "label-studio") == documents


@given(UNSCORED | SCORED)
def test_prodigy_keeps_raw_documents(documents: list[Document]) -> None:
    assert round_trip(documents, "prodigy") == documents


@given(
    worded_documents(rows=word_rows().map(lambda row: replace(row, tags=())), max_sentences=1),
    JSON,
)
def test_prodigy_keeps_the_words_of_one_sentence(
    document: Document, metadata: dict[str, Any]
) -> None:
    document = replace(document, metadata=metadata)
    assert round_trip([document], "prodigy") == [document]


@given(worded_documents())
def test_prodigy_counts_tokens_with_the_last_one_included(document: Document) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write([document], path, "prodigy")
        record = json.loads(path.read_text(encoding="utf-8"))
    words = [token["text"] for token in record["tokens"]]
    assert words == [word for sentence in document.sentences for word in sentence.words]
    for span, entity in zip(record["spans"], document.entities, strict=True):
        held = words[span["token_start"] : span["token_end"] + 1]
        assert held == document.text_of(entity).split(" ")
