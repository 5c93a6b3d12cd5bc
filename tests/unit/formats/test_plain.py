"""Plain text."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import read
from spandet.text import Document

RAW = "One.\r\n\r\nTwo\u2028three\x85 \nfour\r"


def test_a_file_is_a_document_with_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "notes.v2.txt"
    path.write_bytes(RAW.encode())
    assert list(read(path)) == [Document(RAW, id="notes.v2")]


def test_an_empty_file_is_an_empty_document(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert list(read(tmp_path / "empty.txt")) == [Document("", id="empty")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("-DOCSTART- -X- O O\n\nZoe NNP B-NP B-PER\nran VBD B-VP O\nhome NN O O\n", "conll"),
        ("#\tx\n1\tUni\tB-ORG\tO\n2\tLund\tI-ORG\tB-LOC\n3\t.\tO\tO\n", "germeval"),
        ('{"text": "Zoe ran", "spans": []}\n', "prodigy"),
    ],
)
def test_a_corpus_is_not_taken_for_text(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "train.txt"
    path.write_text(text)
    for place in (path, tmp_path):
        with pytest.raises(UsageError, match=f"looks like {name}: .* --from {name} or --from text"):
            read(place)
    assert len(list(read(path, "text"))) == 1


@pytest.mark.parametrize(
    "text", ["We saw B-cells\nand E-mails\nand so on\n", "{1} A note.\n", "a O"]
)
def test_text_that_begins_oddly_is_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert list(read(tmp_path / "a.txt")) == [Document(text, id="a")]


def test_a_folder_is_its_text_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md"):
        (tmp_path / name).write_text(name)
    assert list(read(tmp_path)) == [Document("a.txt", id="a"), Document("b.txt", id="b")]


def test_lines_are_documents_and_only_line_feeds_end_them(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(RAW.encode())
    assert list(read(path, "text-lines")) == [
        Document("One.", id="notes:1"),
        Document("Two\u2028three\x85 ", id="notes:3"),
        Document("four", id="notes:4"),
    ]


@pytest.mark.parametrize(("name", "id_"), [("text", None), ("text-lines", "1")])
def test_standard_input_has_no_name(
    monkeypatch: pytest.MonkeyPatch, name: str, id_: str | None
) -> None:
    raw = io.BufferedReader(io.BytesIO(b"One."))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert list(read("-", name)) == [Document("One.", id=id_)]


def test_bytes_that_are_no_text_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    (tmp_path / "b.txt").write_bytes(b"tea\n\xff\nmate")
    corpus = read(tmp_path, "text", skip_bad=True)
    assert list(corpus) == []
    assert [error.what for error in corpus.skipped] == [
        "byte 0xe9 at position 3 is not UTF-8",
        "byte 0xff at position 4 is not UTF-8",
    ]
    lines = read(tmp_path / "b.txt", "text-lines", skip_bad=True)
    assert [document.text for document in lines] == ["tea", "mate"]
    with pytest.raises(FormatError, match=r"b\.txt:2: byte 0xff at position 0 is not UTF-8"):
        list(read(tmp_path / "b.txt", "text-lines"))
