"""A law of all writers: every entity is read back, or nothing is written."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import FORMATS, read, write
from spandet.text import Document
from support.strategies import LABELS, WORDS, raw_documents, word_rows, worded_documents

WRITABLE = [name for name, row in FORMATS.items() if row.write is not None]
ODD_LABELS = LABELS | st.sampled_from(["", " ", "O", "B-X", "a\tb", "\n", "a;b", "\ud800"])
ROWS = word_rows(words=WORDS | st.sampled_from([" ", "-DOCSTART-", "#"]), labels=ODD_LABELS)


def entities(documents: list[Document]) -> Counter[tuple[str, str]]:
    """Labels and characters, without the white space between words, which columns do not keep."""
    return Counter(
        (entity.label, "".join("".join(document.text_of(entity).split(" … ")).split()))
        for document in documents
        for entity in document.entities
    )


@pytest.mark.parametrize("name", WRITABLE)
@given(documents=st.lists(raw_documents() | worded_documents(rows=ROWS), max_size=3))
@settings(max_examples=40)
def test_every_entity_is_read_back_or_nothing_is_written(
    name: str, documents: list[Document]
) -> None:
    if name.startswith("docbin"):
        pytest.importorskip("spacy")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        try:
            write(documents, path, name)
        except FormatError:
            assert list(Path(folder).iterdir()) == []
            return
        if name == "brat" and not documents:
            return  # a folder without files
        assert entities(list(read(path, name))) == entities(documents)
