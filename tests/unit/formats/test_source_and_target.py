"""Sources and targets: gzip, damage, atomic writing."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pytest

from spandet.errors import FormatError, UsageError
from spandet.formats import source as source_module
from spandet.formats.source import Source
from spandet.formats.target import Target


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_gzip_is_detected_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(gzip.compress("größe".encode()))
    assert Source(str(path)).text() == "größe"
    assert Source(str(path)).head() == "größe"


def test_cut_gzip_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(os.urandom(4096))[:-100])
    with pytest.raises(FormatError, match=r"cut\.jsonl\.gz: damaged gzip data"):
        list(Source(str(path)).lines())


def test_a_missing_file_and_a_folder_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*absent: No such file"):
        Source(str(tmp_path / "absent")).text()
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        Source(str(tmp_path)).text()


def test_lines_keep_odd_separators_and_report_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\xfftwo\nthree\xe2\x80\xa8four")
    (_, first), (_, second), (number, third) = Source(str(path)).lines()
    assert first == "one"
    assert str(second) == f"{path}:2: byte 0xff at position 0 is not UTF-8"
    assert (number, third) == (3, "three\u2028four")


def test_a_record_without_an_end_is_an_error_and_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_BYTES", 10)
    path = tmp_path / "bomb.txt"
    path.write_bytes(gzip.compress(b"0123456789\n" + b"a" * 50 + b"\nfine\n" + b"b" * 11))
    (_, first), (_, second), (_, third), (number, last) = Source(str(path)).lines()
    assert str(first) == f"{path}:1: a line of more than 0 MiB, which is too long to read"
    assert str(second).startswith(f"{path}:2: a line of more than")
    assert third == "fine"
    assert (number, str(last)[: len(str(path)) + 2]) == (4, f"{path}:4")
    with pytest.raises(FormatError, match=r"bomb\.txt: a text of more than"):
        Source(str(path)).text()


def test_siblings_keep_dots_and_find_gzip(tmp_path: Path) -> None:
    (tmp_path / "a.b.txt.gz").touch()
    source = Source(str(tmp_path / "a.b.ann.gz"))
    assert source.stem == "a.b"
    assert source.sibling(".txt", instead_of=".ann").path == str(tmp_path / "a.b.txt.gz")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old")
    with pytest.raises(RuntimeError), Target(str(path)).text() as out:
        out.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.jsonl"]


def test_a_file_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with Target(str(path)).text() as out:
        out.write("new")
        assert not path.exists()
    assert path.read_text() == "new"


def test_replacing_keeps_mode_and_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with Target(str(link)).text() as out:
        out.write("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_device_is_written_to_not_replaced() -> None:
    with Target("/dev/null").text() as out:
        out.write("gone")
    assert not Path("/dev/null").is_file()


def test_equal_data_give_equal_gzip_files(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with Target(str(tmp_path / name)).text() as out:
            out.write("same")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"same"


def test_a_lone_surrogate_is_an_error_with_its_code(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with (
        pytest.raises(FormatError, match=r"U\+D800 is a lone surrogate"),
        Target(str(path)).text() as out,
    ):
        out.write("a\ud800")
    assert not path.exists()


def test_a_folder_is_written_atomically(tmp_path: Path) -> None:
    target = Target(str(tmp_path / "folder"))
    with pytest.raises(RuntimeError), target.folder() as draft:
        (draft / "a").touch()
        raise RuntimeError
    assert names(tmp_path) == []
    with target.folder() as draft:
        (draft / "a").touch()
    assert names(tmp_path / "folder") == ["a"]
    with pytest.raises(UsageError, match="exists already"), target.folder():
        pass


def test_an_unwritable_place_is_a_usage_error(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"cannot write .*: No such file or directory"),
        Target(str(tmp_path / "no" / "out")).text(),
    ):
        pass


def test_drafts_of_killed_writers_can_be_removed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "out")
    gone = [tmp_path / "real" / ".out.01234567.part", tmp_path / ".link.01234567.part"]
    kept = [tmp_path / "real" / ".out.0123456x.part", tmp_path / "real" / ".link.01234567.part"]
    for path in (*gone, *kept):
        path.mkdir() if path.parent == tmp_path else path.touch()
    Target(str(tmp_path / "link")).remove_drafts()
    assert [path.exists() for path in gone] == [False, False]
    assert all(path.exists() for path in kept)
