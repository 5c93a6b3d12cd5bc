"""Damaged files of the XML, annotation tool and text formats: documents or a FormatError."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import read
from spandet.text import Document

SGM = "<DOC>\n<TEXT>Our mayor &amp; Zoe</TEXT></DOC>"
GENIA = """<!DOCTYPE set SYSTEM "gpml.dtd"><set>
<article><articleinfo><bibliomisc>M:1</bibliomisc></articleinfo>
<title><sentence>The <cons sem="G#DNA_N/A"><cons sem="G#protein_N/A">A1</cons> gene</cons> &lt; 3.
</sentence></title><abstract><sentence>It <w c='VB'>is</w>.</sentence></abstract></article></set>"""
ACE = """<source_file><document DOCID="t"><entity TYPE="PER"><entity_mention ID="1">
<extent><charseq START="1" END="9">Our mayor</charseq></extent>
<head><charseq START="5" END="9">mayor</charseq></head>
</entity_mention></entity></document></source_file>"""
ERE = """<deft_ere doc_id="t"><entities><entity type="PER">
<entity_mention id="1" offset="12" length="9"><mention_text>Our mayor</mention_text>
<nom_head offset="16" length="5">mayor</nom_head></entity_mention></entity></entities></deft_ere>"""
DOCCANO = """{"id": 1, "text": "Zoe met Ole", "label": [[0, 3, "PER"]], "page": 3}
{"id": 2, "text": "Zoe", "entities": [{"label": "X", "start_offset": 0, "end_offset": 3}]}
"""
LABEL_STUDIO = """[{"id": 1, "data": {"text": "Zoe met Ole"}, "annotations": [
{"was_cancelled": false, "result": [{"type": "labels", "value":
{"start": 0, "end": 3, "text": "Zoe", "labels": ["PER"]}}]}], "predictions": []},
{"data": {"text": "Ole"}, "predictions": [{"score": 0.5, "result":
[{"type": "labels", "value": {"start": 0, "end": 3, "labels": ["X"]}}]}]}]"""
PRODIGY = """{"text": "Zoe ran", "tokens": [{"text": "Zoe", "start": 0, "end": 3, "id": 0}, \
{"text": "ran", "start": 4, "end": 7, "id": 1}], "spans": [{"start": 0, "end": 3, "label": "PER", \
"token_end": 0, "score": 0.5}], "meta": {"a": 1}, "answer": "accept"}
"""
TEXT = "One.\r\nTwo é.\n\n"
SAMPLES = {
    "genia-xml": ("corpus.xml", GENIA),
    "genia-xml-all": ("corpus.xml", GENIA),
    "ace": ("town.apf.xml", ACE),
    "ace-heads": ("town.apf.xml", ACE),
    "ere": ("town.rich_ere.xml", ERE),
    "ere-heads": ("town.rich_ere.xml", ERE),
    "doccano": ("all.jsonl", DOCCANO),
    "label-studio": ("tasks.json", LABEL_STUDIO),
    "prodigy": ("all.jsonl", PRODIGY),
    "text": ("notes.txt", TEXT),
    "text-lines": ("notes.txt", TEXT),
}
PIECES = [
    *(b"<", b">", b"/", b"&", b"&x;", b'"', b"\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b"),
    *(b"-1", b"9999999", b"1e999", b"NaN", b"null", b"true", b"[", b"]", b"{", b"}", b"[]", b"{}"),
    *(b'""', b"<cons>", b"</cons>", b"<sentence>", b"<article>", b"<entity>", b"<!DOCTYPE"),
    *(b"<![CDATA[", b"\xd9\xa3", b"\\ud800", b'<?xml version="1.0" encoding="utf-7"?>'),
]


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """The sample with some bytes removed, inserted, or shifted."""
    data = sample
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        goal = draw(st.integers(0, len(data)))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        data = draw(
            st.sampled_from(
                [
                    data[:start] + data[end:],
                    data[:start] + piece + data[end:],
                    data[:start],
                    (data[:start] + data[end:])[:goal] + data[start:end] + data[goal:],
                ]
            )
        )
    return data


def documents(folder: str, name: str, data: bytes) -> tuple[int, list[FormatError]]:
    path = Path(folder) / SAMPLES[name][0]
    path.write_bytes(data)
    (Path(folder) / "town.sgm").write_text(SGM)
    (Path(folder) / "town.txt").write_text(SGM)
    corpus = read(path, name, skip_bad=True)
    found = 0
    errors = []
    try:
        for document in corpus:
            assert isinstance(document, Document)
            found += 1
    except FormatError as error:
        errors.append(error)
    return found, errors + corpus.skipped


@pytest.mark.parametrize("name", SAMPLES)
def test_the_undamaged_samples_are_read(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found, errors = documents(folder, name, SAMPLES[name][1].encode())
    assert found
    assert not errors


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(max_examples=100)
def test_damaged_files_give_documents_or_format_errors(name: str, data: st.DataObject) -> None:
    broken = data.draw(damaged(SAMPLES[name][1].encode()))
    with tempfile.TemporaryDirectory() as folder:
        _, errors = documents(folder, name, broken)
        assert all(str(error).startswith(folder) for error in errors)
