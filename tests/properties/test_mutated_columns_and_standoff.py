"""Damaged files of the column, standoff and spaCy formats: documents or a FormatError."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.errors import FormatError
from spandet.formats import read, write
from spandet.text import Document, Entity, WordRow, WordSpan

TEXT = "IL-2 and IL-4\r\nreceptors."
SAMPLES = {
    "conll": b"-DOCSTART- (x y)\n\nZoe NN S-PER\nin IN O\nNew NN B-LOC\nLund NN E-LOC\n\na X O\n",
    "germeval": b"#\thttps://x.y [2011]\n1\tUni\tB-ORG\tO\n2\tLund\tI-ORG\tB-LOC\n\n1\ta\tO\tO\n",
    "conll2012": b"#begin document (a/b); part 000\na 0 0 Zoe NNP * - - - - (A(B*) -\n"
    b"a 0 1 ran VBD * - - - - *) -\n\na 0 0 x X * - - - - (C) -\n\n#end document\n",
    "brat": b"T1\tX 0 4;15 24\tIL-2 receptors\nT2\tX 9 24\tIL-4  receptors\n#1\tScore T1\t0.5\n",
}
PIECES = [
    *(b"\n", b"\n\n", b"\t", b" ", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"#"),
    *(b"-DOCSTART-", b"B-", b"E-X", b"S-X", b"O", b"(", b"*)", b"(X)", b";", b"9 9", b"1 0"),
    *(b"-1", b"99999999999999999999", b"\xd9\xa3", b"\xe2\x80\xa8", b"T1\t", b"#end document\n"),
]


@st.composite
def damaged(draw: st.DrawFn, sample: bytes) -> bytes:
    """The sample with some bytes removed, inserted, or swapped."""
    data = sample
    for _ in range(draw(st.integers(1, 3))):
        first, second, third = sorted(draw(st.integers(0, len(data))) for _ in range(3))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        kind = draw(st.sampled_from(["cut", "insert", "swap", "end"]))
        match kind:
            case "cut":
                data = data[:first] + data[min(second, first + 12) :]
            case "insert":
                data = data[:first] + piece + data[first:]
            case "swap":
                data = data[:first] + data[second:third] + data[first:second] + data[third:]
            case _:
                data = data[:third]
    return data


def documents(folder: str, name: str, data: bytes) -> tuple[int, list[FormatError]]:
    """The number of documents, and the errors of bad records."""
    path = Path(folder) / "sample.ann"
    path.write_bytes(data)
    (Path(folder) / "sample.txt").write_bytes(TEXT.encode())
    corpus = read(path, name, skip_bad=True)
    found = 0
    try:
        for document in corpus:
            assert isinstance(document, Document)
            found += 1
    except FormatError as error:
        return found, [*corpus.skipped, error]
    return found, corpus.skipped


@pytest.mark.parametrize("name", SAMPLES)
def test_the_undamaged_samples_are_read(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found, errors = documents(folder, name, SAMPLES[name])
    assert found
    assert not errors


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(max_examples=200)
def test_damaged_files_give_documents_or_format_errors(name: str, data: st.DataObject) -> None:
    broken = data.draw(damaged(SAMPLES[name]))
    with tempfile.TemporaryDirectory() as folder:
        _, errors = documents(folder, name, broken)
        assert all(str(error).startswith(folder) for error in errors)


def docbin_sample() -> bytes:
    row = WordRow(["Zoe", "ran"], [Entity(WordSpan(0, 1), "PER", 0.5)], ["NN", "VB"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.spacy"
        write([Document.from_rows([row, row], id="x"), Document.from_rows([row])], path)
        return path.read_bytes()


@pytest.mark.parametrize("unpack", [bytes, zlib.decompress])
@given(data=st.data())
@settings(max_examples=100)
def test_a_damaged_docbin_gives_documents_or_format_errors(
    unpack: Callable[[bytes], bytes], data: st.DataObject
) -> None:
    pytest.importorskip("spacy")
    broken = data.draw(damaged(unpack(docbin_sample())))
    with tempfile.TemporaryDirectory() as folder:
        packed = (
            broken if unpack is bytes else zlib.compress(broken)
        )  # the uncompressed content, damaged
        _, errors = documents(folder, "docbin", packed)
        assert all(str(error).startswith(folder) for error in errors)
