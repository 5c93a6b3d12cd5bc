"""Round trips of texts, entities, scores and any ids through brat folders."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.formats import read, write
from spandet.text import Document
from support.strategies import TEXT, raw_documents

LINES = st.text(st.sampled_from("ab\r\n\t .\u2028\ufeff\x85é"), max_size=12)
IDS = st.text(st.sampled_from('ab/\\.%:2F41 *?"\n\x00é'), min_size=1, max_size=10)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Documents with distinct ids and labels without white space; brat stores no metadata."""
    ids = draw(st.sets(IDS, max_size=4))
    drawn = [
        draw(raw_documents(text=TEXT | LINES, ids=st.just(id_), metadata=st.just({})))
        for id_ in sorted(ids)
    ]
    return [
        replace(
            document,
            entities=tuple(
                replace(entity, label=entity.label.replace(" ", "_"))
                for entity in document.entities
            ),
        )
        for document in drawn
    ]


@given(documents())
def test_brat_round_trip(written: list[Document]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        write(written, path, "brat")
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        assert len(files) == 2 * len(written)
        assert {file.parent for file in files} <= {path}
        found = {document.id: document for document in read(path)} if written else {}
    assert found == {document.id: document for document in written}


@given(st.lists(raw_documents(ids=st.none()), min_size=1, max_size=12))
@settings(max_examples=30)
def test_documents_without_ids_keep_their_order(drawn: list[Document]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write([replace(one, entities=()) for one in drawn], Path(folder) / "out", "brat")
        assert [one.text for one in read(Path(folder) / "out")] == [one.text for one in drawn]
