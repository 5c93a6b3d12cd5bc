"""The commands in separate processes, as a user runs them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [
    "convert",
    "stats",
    "view",
    "evaluate",
    "compare",
    "generate",
    "formats",
    "train",
    "trace",
]


def spandet(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spandet", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)


def succeeds(*arguments: object, stdin: str | None = None) -> str:
    done = spandet(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "corpus.jsonl"
    succeeds("generate", "--sentences", 200, "--seed", 3, "-o", path)
    return path


def test_help_names_every_command() -> None:
    text = succeeds("--help")
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize("arguments", [["--help"], ["formats"], ["stats", "{corpus}"]])
def test_light_commands_never_load_torch(arguments: list[str], corpus: Path) -> None:
    code = (
        "import sys; from spandet.cli import main\n"
        "try: main()\n"
        "finally: print([m for m in ('torch', 'transformers', 'spacy') if m in sys.modules])"
    )
    filled = [argument.format(corpus=corpus) for argument in arguments]
    command = [sys.executable, "-c", code, *filled]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_same_seed_writes_the_same_file(corpus: Path, tmp_path: Path) -> None:
    succeeds("generate", "--sentences", 200, "--seed", 3, "-o", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == corpus.read_bytes()
    other = succeeds("generate", "--sentences", 200, "--seed", 4)
    assert other.encode() != corpus.read_bytes()


def test_conversions_keep_counts(corpus: Path, tmp_path: Path) -> None:
    expected = json.loads(succeeds("stats", corpus, "--json"))
    for name, to in [("a.jsonl.gz", "tokens-jsonl"), ("b.json", "tokens-json"), ("c", "brat")]:
        succeeds("convert", corpus, tmp_path / name, "--to", to)
        got = json.loads(succeeds("stats", tmp_path / name, "--json"))
        assert got["entities"] == expected["entities"]
        assert got["labels"] == expected["labels"]
        assert got["nested"] == expected["nested"]
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).startswith(b'{"tokens"')
    assert {"sentences", "words", "documents"} <= set(expected)


def test_pipes(corpus: Path) -> None:
    converted = succeeds("convert", "-", "-", "--to", "tokens-jsonl", stdin=corpus.read_text())
    piped = json.loads(succeeds("stats", "-", "--json", stdin=converted))
    assert piped == json.loads(succeeds("stats", corpus, "--json")) | {"longest": piped["longest"]}


def test_a_corpus_scores_100_against_itself_in_another_tokenisation(
    corpus: Path, tmp_path: Path
) -> None:
    other = tmp_path / "tokens.jsonl"
    succeeds("convert", corpus, other, "--to", "tokens-jsonl")
    assert other.read_text() != corpus.read_text()
    scores = json.loads(succeeds("evaluate", corpus, other, "--json"))
    assert scores["micro"]["f1"] == 1
    keys = {"micro", "macro", "boundary", "nested", "flat", "labels", "lengths"}
    assert keys <= set(scores)
    for group in [scores["micro"], scores["nested"], *scores["labels"].values()]:
        assert {"precision", "recall", "f1", "support"} <= set(group)


def test_reports_in_every_form(corpus: Path, tmp_path: Path) -> None:
    flawed = tmp_path / "flawed.jsonl"
    with corpus.open() as gold, flawed.open("w") as out:
        for line in gold:
            record = json.loads(line)
            record["entities"] = record["entities"][1:]
            out.write(json.dumps(record) + "\n")
    page = tmp_path / "report.html"
    table = succeeds("evaluate", corpus, flawed, "--html", page)
    assert "micro" in table
    assert page.read_text().startswith("<!doctype html>")
    assert "|" in succeeds("evaluate", corpus, flawed, "--markdown")
    better = json.loads(succeeds("compare", corpus, corpus, flawed, "--json"))
    assert better["delta"] < 0
    shown = succeeds("view", corpus, flawed, "--limit", 2)
    assert "✗" in shown
    succeeds("view", corpus, flawed, "-o", tmp_path / "view.html")
    assert "<script>" in (tmp_path / "view.html").read_text()


def test_user_mistakes_are_one_line_with_an_exit_code(corpus: Path, tmp_path: Path) -> None:
    bad = tmp_path / "dev.jsonl"
    bad.write_text(
        '{"text": "ab"}\n{"text": "cd", "entities": [{"start": 1, "end": 1, "label": "X"}]}\n'
    )
    done = spandet("convert", bad, tmp_path / "out.jsonl")
    assert done.returncode == 1
    assert f"error: {bad}:2: entity 0: start 1 is not before end 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.jsonl").exists()
    absent = spandet("stats", tmp_path / "absent.jsonl")
    assert (absent.returncode, "Traceback" in absent.stderr) == (2, False)
    assert spandet("stats").returncode == 2
    mismatch = spandet("evaluate", corpus, bad, "--predicted-from", "jsonl")
    assert mismatch.returncode == 1
    assert "document" in mismatch.stderr


def test_bad_records_are_skipped_counted_and_listed(tmp_path: Path) -> None:
    bad = tmp_path / "dev.jsonl"
    bad.write_text('{"text": "ab"}\n{"text": 5}\nnonsense\n{"text": "cd"}\n')
    out = tmp_path / "out.jsonl"
    done = spandet("convert", bad, out, "--skip-bad")
    assert done.returncode == 0
    assert len(out.read_text().splitlines()) == 2
    assert "skipped 2 bad records" in done.stderr
    assert f"{bad}:2: text is 5, expected a string" in done.stderr
    assert f"{bad}:3: not JSON" in done.stderr


def test_nested_entities_are_refused_by_column_formats(corpus: Path, tmp_path: Path) -> None:
    done = spandet("convert", corpus, tmp_path / "out.conll")
    assert done.returncode == 1
    assert "overlaps" in done.stderr
    assert list(tmp_path.iterdir()) == []
