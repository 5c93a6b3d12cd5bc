"""An output that is an input is refused, however it is spelt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spandet.errors import UsageError
from spandet.formats.overwriting import refuse_overwriting


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working folder: gold.jsonl, links to it, and a folder."""
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text("gold")
    Path("other.jsonl").write_text("gold")
    Path("folder/deep").mkdir(parents=True)
    Path("folder/deep/a.jsonl").write_text("a")
    Path("symbolic.jsonl").symlink_to("gold.jsonl")
    Path("alias").symlink_to("folder")
    os.link("gold.jsonl", "hard.jsonl")


@pytest.mark.parametrize(
    ("name", "output", "what"),
    [
        ("gold.jsonl", "gold.jsonl", "is the input gold.jsonl"),
        ("gold.jsonl", "./folder/../gold.jsonl", "is the input gold.jsonl"),
        ("gold.jsonl", "symbolic.jsonl", "is the input gold.jsonl"),
        ("symbolic.jsonl", "gold.jsonl", "is the input symbolic.jsonl"),
        ("gold.jsonl", "hard.jsonl", "is the input gold.jsonl"),
        ("absent.jsonl", "./absent.jsonl", "is the input absent.jsonl"),
        ("folder", "folder", "is the input folder"),
        ("folder", "alias/", "is the input folder"),
        ("folder", "folder/deep/a.jsonl", "is inside the input folder folder"),
        ("alias", "folder/new.jsonl", "is inside the input folder alias"),
        (
            "folder/deep/a.jsonl",
            "folder",
            "is a folder that contains the input folder/deep/a.jsonl",
        ),
        ("out.jsonl.spool", "out.jsonl", "one run uses for its output and spool"),
        (".out.jsonl.lock", "out.jsonl", "one run uses for its output and spool"),
        ("gold.jsonl", "gold.jsonl.spool", "one run uses for its output and spool"),
        ("s3://bucket/corpus", "s3://bucket/corpus/found", "is inside the input folder s3:"),
    ],
)
def test_what_would_change_an_input_is_refused(name: str, output: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_overwriting(["other.jsonl", name], output)
    assert str(caught.value).startswith(f"the output {output} ")
    assert what in str(caught.value)
    assert Path("gold.jsonl").read_text() == "gold"


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_that_is_linked_into_an_input_folder(
    link: Callable[..., None], tmp_path: Path
) -> None:
    link(tmp_path / "gold.jsonl", tmp_path / "folder" / "b.jsonl")
    with pytest.raises(UsageError, match=r"gold\.jsonl is linked into the input folder folder"):
        refuse_overwriting(["folder"], "gold.jsonl")


def test_a_uri_of_this_machine_is_its_file(tmp_path: Path) -> None:
    spaced = tmp_path / "a b.jsonl"
    spaced.touch()
    with pytest.raises(UsageError, match="is the input file:"):
        refuse_overwriting([spaced.as_uri()], "a b.jsonl")


def test_standard_streams_count_as_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("gold.jsonl").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(UsageError, match=r"hard\.jsonl is the input standard input"):
            refuse_overwriting(["-"], "hard.jsonl")
        refuse_overwriting(["-"], "other.jsonl")
    with Path("gold.jsonl").open("a") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(UsageError, match="the output standard output is the input gold"):
            refuse_overwriting(["gold.jsonl"], "-")
        refuse_overwriting(["other.jsonl"], "-")


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("gold.jsonl", "new.jsonl"),
        ("gold.jsonl", "other.jsonl"),
        ("gold.jsonl", "-"),
        ("-", "gold.jsonl"),
        ("-", "-"),
        ("folder", "folder.jsonl"),
        ("folder", "gold.jsonl"),
        ("gold.jsonl", "gold.jsonl.gz"),
        ("/dev/null", "/dev/null"),
        ("s3://bucket/corpus", "s3://bucket/found"),
    ],
)
def test_everything_else_is_accepted(name: str, output: str) -> None:
    refuse_overwriting([name], output)
