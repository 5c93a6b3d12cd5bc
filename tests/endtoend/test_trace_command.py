"""The command `spandet trace`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from spandet import generate, write
from spandet.cli import app
from spandet.errors import FormatError, SpandetError, UsageError
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer

SECTIONS = {
    "encoder": {"hashed": {"dim": 16, "rows": 64}, "fusion": {"dim": 16}},
    "detector": {"name": "locate-and-label"},
    "decoding": {"threshold": 0.3},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model, a corpus with gold, and one without."""
    place = tmp_path_factory.mktemp("trace")
    documents = list(generate(15, seed=7))
    torch.manual_seed(1)
    recognizer = Recognizer.build(ModelSettings.resolve(SECTIONS), documents)
    with torch.no_grad():
        for parameter in recognizer.modules().parameters():
            parameter.normal_(std=0.4)
    recognizer.save_pretrained(place / "model")
    write(documents, place / "gold.jsonl")
    (place / "notes.txt").write_text("Tibburn beat Halburn. Nobody saw it.\n")
    (place / "bad.jsonl").write_text('{"text": "ok"}\nnonsense\n')
    return place


def trace(folder: Path, *arguments: object) -> str:
    command = ["trace", str(folder / "model"), *map(str, arguments)]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(folder: Path, *arguments: object) -> SpandetError:
    with pytest.raises(SpandetError) as caught:
        trace(folder, *arguments)
    return caught.value


LINE = re.compile(r"^  (?:([✓✗]) )?\(\d+, \d+, [^)]*\)(?: ← \(-?\d+\.\d\d, -?\d+\.\d\d\)){2}")


def test_a_text_without_gold_has_no_outcomes(folder: Path) -> None:
    text = "Halburn Rangers beat Tibburn in Ludyne."
    lines = trace(folder, text, "--set", "decoding.threshold=0").splitlines()
    assert re.search(r"\[[⁰¹²³⁴⁵⁶⁷⁸⁹]+[^]]*\][⁰¹²³⁴⁵⁶⁷⁸⁹]+\w", lines[0])
    found = [LINE.match(line) for line in lines[1:-1]]
    assert found
    assert all(match is not None and match[1] is None for match in found)


def test_with_gold_outcomes_and_misses_are_printed(folder: Path) -> None:
    text = trace(folder, "--input", folder / "gold.jsonl")
    assert len(re.findall(r"^── ", text, flags=re.MULTILINE)) <= 10
    assert re.search(r"^  ✗ ", text, flags=re.MULTILINE)
    assert re.search(r"^  ○ \(\d+, \d+, \w+\) missed: ", text, flags=re.MULTILINE)
    assert re.search(r"^    nearest \(\d+, \d+, [^)]*\) ← ", text, flags=re.MULTILINE)
    right, wrong, missed = map(int, re.findall(r"\d+", text.splitlines()[-1]))
    assert text.count("\n  ○ ") == missed
    assert text.count("\n  ✗ ") == wrong
    assert text.count("\n  ✓ ") == right


def test_a_file_without_entities_has_no_gold(folder: Path) -> None:
    text = trace(folder, "--input", folder / "notes.txt")
    assert text.startswith("── notes\n")
    assert not re.search("[✓✗○]", text)
    assert trace(folder, "-i", folder / "notes.txt", "--from", "text-lines").startswith(
        "── notes:1\n"
    )


def test_json_output_has_one_line_per_document(folder: Path) -> None:
    records = [
        json.loads(line)
        for line in trace(folder, "-i", folder / "gold.jsonl", "--json").splitlines()
    ]
    documents = list(generate(15, seed=7))
    assert [record["text"] for record in records] == [d.text for d in documents]
    for record in records:
        for sentence in record["sentences"]:
            assert sentence["gold"] is not None
            for found in sentence["found"]:
                assert 0 <= found["start"] < found["end"] <= len(sentence["words"])
                assert [step["stage"] for step in found["steps"]] == ["seed", "adjusted"]
    limited = trace(folder, "-i", folder / "gold.jsonl", "--json", "--limit", 2)
    assert [json.loads(line) for line in limited.splitlines()] == records[:2]


def test_settings_can_be_changed(folder: Path) -> None:
    text = "Halburn Rangers beat Tibburn in Ludyne."
    assert "nothing found" in trace(folder, text, "--set", "decoding.threshold=1")


def test_a_page_is_written_atomically(folder: Path) -> None:
    page = folder / "trace.html"
    assert trace(folder, "-i", folder / "gold.jsonl", "--html", page) == ""
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "<title>model on gold.jsonl</title>" in text
    assert f"{len(list(generate(15, seed=7)))} documents" in text
    assert "http" not in text.replace('http-equiv="Content-Security-Policy"', "").replace(
        "http://www.w3.org/2000/svg", ""
    )
    both = trace(folder, "Tibburn", "--json", "--html", page)
    assert json.loads(both)["text"] == "Tibburn"
    assert "<title>model</title>" in page.read_text()


def test_a_bad_record_keeps_the_old_page(folder: Path) -> None:
    page = folder / "kept.html"
    page.write_text("old")
    error = refused(folder, "-i", folder / "bad.jsonl", "--html", page)
    assert isinstance(error, FormatError)
    assert "bad.jsonl:2: not JSON" in str(error)
    assert page.read_text() == "old"


def test_mistakes_are_errors_with_their_names(folder: Path) -> None:
    gold = folder / "gold.jsonl"
    assert str(refused(folder)) == "trace needs a TEXT or --input FILE, got neither"
    assert str(refused(folder, "a", "-i", gold)) == "trace needs a TEXT or --input FILE, got both"
    assert "a TEXT has none" in str(refused(folder, "a", "--from", "jsonl"))
    assert isinstance(refused(folder, "-i", folder / "absent.jsonl"), UsageError)
    assert "there is no model" in str(refused(folder / "no", "a"))
    assert "cannot write" in str(refused(folder, "a", "--html", folder / "no" / "page.html"))


def test_no_traceback_and_the_code_of_a_bad_argument(folder: Path) -> None:
    command = [sys.executable, "-m", "spandet", "trace", str(folder / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: trace needs a TEXT or --input FILE, got neither\n"


@pytest.mark.parametrize("text", ["", " ", "\udcff", "\x1b[2J", "日本"])
def test_unusual_texts_are_printed(folder: Path, text: str) -> None:
    assert "\x1b" not in trace(folder, text)
    assert json.loads(trace(folder, text, "--json"))["text"] == text
