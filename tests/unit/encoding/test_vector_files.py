"""Files of word vectors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from spandet.encoding.vector_files import read_vectors
from spandet.errors import FormatError, UsageError

GLOVE = "the 1 2 3\n. . . 4 5 6\ncell 7e-1 -8 9.5\nthe 0 0 0\n"
TABLE = {". . .": [4.0, 5.0, 6.0], "cell": [0.7, -8.0, 9.5], "the": [1.0, 2.0, 3.0]}


def binary(separator: bytes = b"") -> bytes:
    rows = [
        word.encode() + b" " + np.array(row, "<f4").tobytes() + separator
        for word, row in [("the", [1, 2, 3]), ("cell", [0.7, -8, 9.5]), ("é", [10, 32, 0])]
    ]
    return b"3 3\n" + b"".join(rows)


def write(folder: Path, content: bytes | str) -> str:
    path = folder / "vectors"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize("header", ["", "4 3\n", "\ufeff4 3\n"])
@pytest.mark.parametrize("ending", ["\n", " \n", "\r\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_text(tmp_path: Path, header: str, ending: str, zipped: bool) -> None:
    content = (header + GLOVE.replace("\n", ending)).encode()
    vectors = read_vectors(
        write(tmp_path, gzip.compress(content) if zipped else content), wanted=None
    )
    assert vectors.words == tuple(TABLE)
    assert vectors.table.dtype == np.float32
    np.testing.assert_allclose(vectors.table, list(TABLE.values()), rtol=1e-6)


@pytest.mark.parametrize("separator", [b"", b"\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_binary(tmp_path: Path, separator: bytes, zipped: bool) -> None:
    content = binary(separator)
    vectors = read_vectors(
        write(tmp_path, gzip.compress(content) if zipped else content), wanted=None
    )
    assert vectors.words == ("cell", "the", "é")
    np.testing.assert_allclose(
        vectors.table, [[0.7, -8.0, 9.5], [1.0, 2.0, 3.0], [10.0, 32.0, 0.0]], rtol=1e-6
    )


@pytest.mark.parametrize("content", [GLOVE.encode(), binary()])
def test_only_what_is_wanted(tmp_path: Path, content: bytes) -> None:
    vectors = read_vectors(write(tmp_path, content), wanted={"cell", "absent", "."})
    assert vectors.words == ("cell",)
    assert read_vectors(write(tmp_path, content), wanted=set()).words == ()


def test_a_binary_file_longer_than_a_read(tmp_path: Path) -> None:
    table = np.arange(3000 * 200, dtype="<f4").reshape(3000, 200)
    rows = [f"w{n:04} ".encode() + row.tobytes() for n, row in enumerate(table)]
    vectors = read_vectors(write(tmp_path, b"3000 200\n" + b"".join(rows)), wanted=None)
    np.testing.assert_array_equal(vectors.table, table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the 1 2 3\ncell 1 2\n", r"vectors:2: expected a word and 3 numbers, got 2 numbers"),
        ("the 1 2 3\ncell 1 2 3 4\n", r"vectors:2: expected a word and 3 numbers, got 4 numbers"),
        ("2 3\nthe 1 2\n", r"vectors:2: expected a word and 3 numbers, got 2 numbers"),
        ("the 1 2 3\ncell 1 x 3\n", r"vectors:2: .* 3 numbers, but could not .* 'x'"),
        ("the\n", r"vectors:1: expected a word and 1 numbers, got 0 numbers"),
        ("the 1 2 nan\n", r"vectors: the vector of 'the' has a number that is not finite"),
        (b"the 1 2\n\xff 1 2\n", r"vectors:2: byte 0xff at position 0 is not UTF-8"),
        (binary()[:-1], r"vectors: the file ends in vector 3 of 3, expected 12 bytes"),
        (b"4" + binary()[1:], r"vectors: the file ends in vector 4 of 4"),
        (b"4" + binary()[1:] + b"\0" * 2**21, r"vectors: vector 4 has a word of more than 1 MiB"),
        ("the" + " 1" * 70_000, r"vectors:1: found 70,000 numbers, expected at most 65,536"),
    ],
)
def test_damaged_files_are_errors(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_vectors(write(tmp_path, content), wanted=None)


def test_a_short_line_is_wrong_even_if_its_word_is_not_wanted(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r":2: expected a word and 3 numbers"):
        read_vectors(write(tmp_path, "the 1 2 3\ncell 1 2\n"), wanted={"the"})


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*absent"):
        read_vectors(str(tmp_path / "absent"), wanted=None)
