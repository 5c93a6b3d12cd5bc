"""Inputs of `read`: empty, missing, unreadable, or not a regular file."""

from __future__ import annotations

import gzip
import io
import logging
import os
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spandet.cli import app
from spandet.errors import FormatError, UsageError
from spandet.formats import read

LINE = '{"text": "Zoe ran"}\n'


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".tsv", ".conll", ".v4_gold_conll"])
def test_an_empty_file_of_lines_is_an_empty_corpus(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"empty{suffix}"
    path.write_bytes(content)
    assert list(read(path)) == []


def test_nothing_on_standard_input_is_an_empty_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"")))
    monkeypatch.setattr(sys, "stdin", stream)
    assert list(read("-")) == []


def test_an_empty_json_list_needs_its_brackets(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.touch()
    with pytest.raises(FormatError, match=r"empty\.json:1: found the end of the file, expected"):
        list(read(path))


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.txt", "gone.strange", "gone", "a.jsonl/b"])
@pytest.mark.parametrize("format_", [None, "jsonl"])
def test_a_missing_input_is_reported_as_missing(
    tmp_path: Path, name: str, format_: str | None
) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(UsageError, match=f"^there is no file {tmp_path / name}$"):
        read(tmp_path / name, format_)


def test_a_broken_link_is_an_error_with_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to("gone.jsonl")
    (tmp_path / "a.jsonl").write_text(LINE)
    message = f"{link} is a link to gone.jsonl, which is missing"
    with pytest.raises(UsageError, match=message):
        read(link)
    with pytest.raises(UsageError, match=message):
        list(read(tmp_path, "jsonl"))


def test_an_input_without_permission_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret.txt"
    path.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    with pytest.raises(UsageError, match=r"cannot read .*secret\.txt: Permission denied"):
        read(path)


def test_a_folder_that_cannot_be_read_is_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.jsonl").write_text(LINE)
    look = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UsageError, match=r"cannot read the folder .*closed: Permission denied"):
        list(read(tmp_path, "jsonl"))


def test_a_folder_without_readable_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^the folder {tmp_path} has no file$"):
        read(tmp_path)
    (tmp_path / "picture.png").touch()
    with pytest.raises(UsageError, match=f"^the folder {tmp_path} has no file of a known format$"):
        read(tmp_path)


def test_pipes_and_sockets_in_a_folder_are_skipped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "other.jsonl").symlink_to(tmp_path / "folder.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "null.jsonl").symlink_to("/dev/null")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made, caplog.at_level(logging.WARNING, "spandet"):
        made.bind("socket.jsonl")
        corpus = read(tmp_path, "jsonl")
        assert len(list(corpus)) == len(list(corpus)) == 1
    passed = "is a pipe, a socket or a device: skipped"
    assert sorted(caplog.messages) == [
        f"{tmp_path}/null.jsonl {passed}",
        f"{tmp_path}/other.jsonl is a link to a folder: skipped",
        f"{tmp_path}/pipe.jsonl {passed}",
        f"{tmp_path}/socket.jsonl {passed}",
    ]


def test_a_pipe_is_not_read_to_detect_its_format(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(UsageError, match=r"pipe\.jsonl can be read only once: give its format"):
        read(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "pipe.txt")
    assert read(tmp_path / "pipe.txt").source.path == str(tmp_path / "pipe.txt")


def test_damage_in_a_folder_of_texts_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(os.urandom(4096))[:-100])
    (tmp_path / "b.txt").write_text("fine")
    assert [document.text for document in read(tmp_path, skip_bad=True)] == ["fine"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "gone.conll", "out.jsonl"],
        ["stats", "gone"],
        ["view", "gone.txt"],
        ["view", "here.jsonl", "gone.txt"],
        ["evaluate", "here.jsonl", "gone.jsonl"],
        ["compare", "here.jsonl", "here.jsonl", "gone.strange"],
        ["predict", "model", "here.jsonl", "gone.txt"],
        ["trace", "model", "--input", "gone.txt"],
        ["benchmark", "speed", "model", "gone.jsonl"],
        ["benchmark", "train", "recipe.toml", "gone.jsonl"],
        ["benchmark", "table", "a.toml", "--train", "here.jsonl", "--dev", "gone", "--out", "out"],
        ["export", "model", "--onnx", "out", "--data", "gone.jsonl"],
        ["pack", "model", "out", "--data", "gone.jsonl"],
    ],
)
def test_every_command_reports_a_missing_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.jsonl").write_text(LINE)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith("there is no file gone")


@pytest.mark.parametrize("command", [["stats"], ["view"], ["convert"], ["evaluate", "empty.jsonl"]])
def test_commands_take_an_empty_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    assert CliRunner().invoke(app, [*command, "empty.jsonl"]).exit_code == 0
