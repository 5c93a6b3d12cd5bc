"""brat standoff: a sample, file names, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import read, write
from spandet.text import CharSpan, Document, Entity

TEXT = "IL-2 and IL-4\r\nreceptors."
ANNOTATION = """T1\tprotein 0 4\tIL-2
T2\tprotein 0 4;15 24\tIL-2 receptors
T3\tprotein 9 24\tIL-4  receptors
R1\tRelated Arg1:T1 Arg2:T2\t
E1\tBinding:T1 Theme:T2
A1\tNegated T1
M2\tSpeculated T2
N1\tReference T1 UniProt:1\tIL2
*\tEquiv T1 T2
#1\tAnnotatorNotes T1\tT9 is only a note

#2\tScore T3\t0.25
#3\tScore T1\tvery high
#4\tScore T2\t17
"""


def pair(folder: Path, annotation: str = ANNOTATION, text: str = TEXT, name: str = "a1") -> Path:
    (folder / f"{name}.txt").write_bytes(text.encode())
    path = folder / f"{name}.ann"
    path.write_bytes(annotation.encode())
    return path


def test_entities_and_our_scores_are_read(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path))
    assert document == Document(
        TEXT,
        (
            Entity(CharSpan(0, 4), "protein"),
            Entity.from_fragments([CharSpan(0, 4), CharSpan(15, 24)], "protein"),
            Entity(CharSpan(9, 24), "protein", 0.25),
        ),
        "a1",
    )


def test_fragments_may_come_in_any_order_and_touch(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path, "T1\tX 9 13;0 2;2 4\tIL-4 IL -2\n"))
    assert document.entities[0].fragments == (CharSpan(0, 4), CharSpan(9, 13))


def test_a_folder_is_all_its_documents_by_name(tmp_path: Path) -> None:
    pair(tmp_path, "", "two", "b")
    pair(tmp_path, "", "one", "a")
    (tmp_path / "alone.txt").write_text("has no annotation")
    assert [(document.id, document.text) for document in read(tmp_path)] == [
        ("a", "one"),
        ("b", "two"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "T1\tX 0 4\tIL-3",
            ':1: the text at 0 4 is "IL-2", but the line has "IL-3"',
        ),
        (
            "T1\tX 0 4;9 13\tIL-2 and IL-4",
            ':1: the text at 0 4;9 13 is "IL-2 IL-4", but the line has "IL-2 and IL-4"',
        ),
        ("\nT1\tX 4 3\t", ":2: start 4 is not before end 3; is the end inclusive?"),
        ("T1\tX 9 99\tIL-4", ":1: 9:99 is outside the 25 characters of the text"),
        ("T1\tX\tIL-2", ':1: found "T1\\tX\\tIL-2", expected T1, a tab, a label and its offsets'),
        ("T1\tX 0 \u0664\tIL-2", ":1: found "),
        ("T1\tX 0 4;\tIL-2", ":1: found "),
        (f"T1\tX 0 {'9' * 5000}\tIL-2", ":1: found "),
        ("T1\tX 0 4\tIL-2\nT1\tX 0 4\tIL-2", ":2: T1 occurs twice, expected a different name"),
        ("T1\tX 0 4;2 4\tIL-2 -2", ":1: fragments of T1 overlap, expected fragments apart"),
        ("X1\tX 0 4\tIL-2", ':1: found "X1\\tX 0 4\\tIL-2", expected a line that begins with T'),
    ],
)
def test_errors_have_the_line_number(tmp_path: Path, line: str, message: str) -> None:
    path = pair(tmp_path, line)
    with pytest.raises(FormatError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_invalid_utf8_is_an_error_with_the_file(tmp_path: Path) -> None:
    path = pair(tmp_path)
    path.write_bytes(b"T1\tX 0 1\t\xff\n")
    with pytest.raises(FormatError, match=r"a1\.ann:1: byte 0xff at position 9 is not UTF-8"):
        list(read(path))
    (tmp_path / "a1.txt").write_bytes(b"\xfe")
    with pytest.raises(FormatError, match=r"a1\.txt: byte 0xfe at position 0 is not UTF-8"):
        list(read(path))


def test_a_missing_text_is_one_bad_record(tmp_path: Path) -> None:
    pair(tmp_path, name="b")
    pair(tmp_path, name="a")
    (tmp_path / "a.txt").unlink()
    corpus = read(tmp_path, skip_bad=True)
    assert [document.id for document in corpus] == ["b"]
    assert [str(error) for error in corpus.skipped] == [
        f"{tmp_path}/a.ann: its text is missing, expected {tmp_path}/a.txt"
    ]


def test_standard_input_has_no_annotation_file() -> None:
    with pytest.raises(UsageError, match="give a file or folder, not -"):
        list(read("-", "brat"))


def test_the_files_as_they_are_written(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path))
    write([document], tmp_path / "out", "brat")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a1.ann", "a1.txt"]
    assert (tmp_path / "out/a1.txt").read_bytes() == TEXT.encode()
    assert (tmp_path / "out/a1.ann").read_text() == (
        "T1\tprotein 0 4\tIL-2\nT2\tprotein 0 4;15 24\tIL-2 receptors\n"
        "T3\tprotein 9 24\tIL-4  receptors\n#3\tScore T3\t0.25\n"
    )


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        (None, "000000"),
        ("", "000000"),
        ("x" * 201, "000000"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("..", "%2E%2E"),
        ("/root", "%2Froot"),
        ("C:\\x", "C%3A%5Cx"),
        ("50%", "50%25"),
        ("naïve-1.b", "naïve-1.b"),
        ("a\x00b", "a%00b"),
        ("\ud800", "%D800"),
    ],
)
def test_an_id_never_leaves_the_folder(tmp_path: Path, id_: str | None, name: str) -> None:
    write([Document("text", id=id_)], tmp_path / "in/out", "brat")
    assert sorted(path.name for path in (tmp_path / "in/out").iterdir()) == [
        f"{name}.ann",
        f"{name}.txt",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_percent_signs_of_other_programs_are_kept(tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path, name="rate%41%2F"))
    assert document.id == "rate%41%2F"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            Document("ab", (Entity(CharSpan(0, 1), "cell type"),), "x"),
            "document 'x': the label 'cell type' has white space, which brat cannot hold",
        ),
        (
            Document("ab", (Entity(CharSpan(0, 1), ""),), "x"),
            "document 'x': the label '' is empty, which brat cannot hold",
        ),
        (
            Document("a\ud800", (), "x"),
            "document 'x': character U+D800 is a lone surrogate, which UTF-8 cannot hold",
        ),
        (
            Document("other", (), "first"),
            "document 'first': another document has the file first.txt: ids must differ",
        ),
    ],
)
def test_what_brat_cannot_represent_is_refused(
    tmp_path: Path, document: Document, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        write([Document("text", id="first"), document], tmp_path / "out", "brat")
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())
