"""spandet pack: the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spandet import write
from spandet.cli import app
from spandet.errors import UsageError
from support.small_models import small_documents, small_model


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["pack", *map(str, words)], catch_exceptions=True)


def test_raw_text_and_given_words_are_distinguished(tmp_path: Path) -> None:
    own, raw = tmp_path / "own" / "dev.jsonl", tmp_path / "raw" / "dev.jsonl"
    documents = small_documents()
    for path, some in (
        (own, documents),
        (raw, [replace(document, own_sentences=None) for document in documents]),
    ):
        path.parent.mkdir()
        write(some, path, "jsonl")
    about = tmp_path / "about.md"
    about.write_text("# About\n")
    model = small_model("locate-and-label")
    both = ("--data", raw, "--data", own)
    done = run(model, tmp_path / "out", *both, "--max-loss", 5, "--about", about, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    names = [one["data"] for one in report["scores"]]
    assert names == ["dev.jsonl (raw text)", "dev.jsonl (its own words)"]
    assert report["bytes"] < 0.4 * report["parent_bytes"]
    assert (tmp_path / "out" / "README.md").read_text().startswith("# About\n\n## Packed (int8")


def test_invalid_arguments_are_errors_with_their_names(tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    write(small_documents(6), data, "jsonl")
    for words, message in (
        (("--pieces", 5), "--pieces is for a pruned vocabulary"),
        (("--data", data), "--data has files of one name"),
        (("--about", tmp_path / "no.md"), "cannot read .*no.md"),
    ):
        done = run("model", tmp_path / "out", "--data", data, *words)
        with pytest.raises(UsageError, match=message):
            raise done.exception or AssertionError(done.output)
