"""spandet predict and spandet models in separate processes, some of them killed."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spandet import read, write
from spandet.inference.recognizer import Recognizer
from spandet.text import Document
from support.command_line import spandet, succeeds
from support.small_models import small_documents, small_model

DETECTOR = "proposer-regressor"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "spandet", *map(str, arguments)]


def marks(spool: Path) -> int:
    return spool.read_bytes().count(b'{"done": ') if spool.exists() else 0


def test_repeated_kills_and_resumes_lose_nothing(tmp_path: Path) -> None:
    model, rng = small_model(DETECTOR), random.Random(4)
    texts = [f"Halburn Rangers beat Tibburn {n} to {n % 7}." for n in range(5000)]
    write([Document(text, id=str(n)) for n, text in enumerate(texts)], tmp_path / "in.jsonl")
    arguments = ["predict", model, tmp_path / "in.jsonl", "--min-score", 0, "-o"]
    succeeds(*arguments, tmp_path / "whole.jsonl")
    out, spool = tmp_path / "out.jsonl", tmp_path / "out.jsonl.spool"
    done = 0
    for _ in range(3):
        running = subprocess.Popen(command(*arguments, out, "--resume"))
        while marks(spool) <= done and running.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.random())
        running.send_signal(signal.SIGKILL)
        if running.wait() == 0:  # it had finished before the kill
            break
        assert not out.exists()
        assert marks(spool) > done  # finished documents are kept
        done = marks(spool)
    refused = spandet(*arguments, out) if spool.exists() else None
    assert refused is None or (refused.returncode, "--resume" in refused.stderr) == (2, True)
    succeeds(*arguments, out, "--resume")
    assert not spool.exists()
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert [document.id for document in read(out)] == [str(n) for n in range(5000)]


def test_an_interrupt_prints_how_to_resume(tmp_path: Path) -> None:
    write([Document("A text.", id=str(n)) for n in range(20_000)], tmp_path / "in.jsonl")
    out = tmp_path / "out.jsonl"
    running = subprocess.Popen(
        command("predict", small_model(DETECTOR), tmp_path / "in.jsonl", "-o", out),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not marks(tmp_path / "out.jsonl.spool"):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, output = running.communicate()
    assert (running.returncode, output) == (
        130,
        "interrupted: the same command with --resume continues\n",
    )


def test_several_inputs_are_predicted_in_order(tmp_path: Path) -> None:
    model = small_model(DETECTOR)
    documents = small_documents(20)
    write(documents, tmp_path / "a.jsonl.gz")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "b.txt").write_text("Halburn Rangers beat Tibburn.")
    (tmp_path / "texts" / "a.txt").write_text("Tibburn.")
    out = tmp_path / "out.jsonl"
    succeeds("predict", model, tmp_path / "a.jsonl.gz", tmp_path / "texts", "-o", out)
    texts = [document.text for document in documents]
    texts += ["Tibburn.", "Halburn Rangers beat Tibburn."]
    found = list(read(out))
    assert [document.text for document in found] == texts
    own = Recognizer.from_pretrained(model).predict([*documents, *map(Document, texts[-2:])])
    assert [document.entities for document in found] == [document.entities for document in own]


def test_plain_text_on_standard_input(tmp_path: Path) -> None:
    model, text = small_model(DETECTOR), small_documents(20)[0].text
    output = succeeds("predict", model, "-", "--min-score", "0", stdin=text)
    record = json.loads(output)
    assert record["text"] == text
    labels = [entity["label"] for entity in record["entities"]]
    assert labels
    output = succeeds("predict", model, "-", "--min-score", "0", "--label", labels[0], stdin=text)
    assert {e["label"] for e in json.loads(output)["entities"]} == {labels[0]}
    assert spandet("predict", model, "-", stdin="{broken").returncode == 2


def test_exit_codes(tmp_path: Path) -> None:
    model, data = small_model(DETECTOR), tmp_path / "in.jsonl"
    data.write_text('{"text": "Tibburn."}\n{"text": 3}\n')
    out = tmp_path / "out.jsonl"
    bad = spandet("predict", model, data, "-o", out)
    assert (bad.returncode, bad.stderr) == (
        1,
        f"error: {data}:2: text is 3, expected a string\n",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]
    skipped = spandet("predict", model, data, "-o", out, "--skip-bad")
    assert skipped.returncode == 3
    assert "skipped 1 bad records" in skipped.stderr
    assert len(list(read(out))) == 1
    for arguments in (
        ("predict", model, data, "-o", out, "--label", "nothing"),
        ("predict", model, data, "-o", out, "--min-score", "2"),
        ("predict", model, data, "-o", out, "--device", "abacus"),
        ("predict", tmp_path / "absent", data, "-o", out),
        ("predict", model, tmp_path / "absent.txt", "-o", out),
    ):
        assert spandet(*arguments).returncode == 2, arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def with_peak(*arguments: object) -> tuple[int, str, int]:
    """Exit code, stderr and peak memory in kB of a command.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    code = (
        "import sys; from spandet.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "    status = open('/proc/self/status').read()\n"
        "    print(status.split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    run = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    output, _, most = done.stderr.rstrip("\n").rpartition("\n")
    return done.returncode, output, int(most)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_gzip_bomb_uses_little_memory(tmp_path: Path) -> None:
    bomb, out = tmp_path / "bomb.jsonl.gz", tmp_path / "out.jsonl"
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        stream.write(b'{"text": "')
        for _ in range(1 << 10):
            stream.write(b"a" * (1 << 20))
        stream.write(b'"}\n{"text": "fine"}\n')
    code, output, most = with_peak("convert", bomb, out)
    assert code == 1
    assert output == f"error: {bomb}:1: a line of more than 64 MiB, which is too long to read"
    assert most < 400_000
    assert not out.exists()
    (tmp_path / "fine.txt").write_text("fine")
    model = small_model(DETECTOR)
    _, _, usual = with_peak("predict", model, tmp_path / "fine.txt", "-o", out)
    code, output, most = with_peak("predict", model, bomb, "-o", out, "--skip-bad")
    assert code == 3
    assert "skipped 1 bad records" in output
    assert most < usual + 300_000
    assert [document.text for document in read(out)] == ["fine"]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(("leak", "code"), [(0, 0), (2000, 1)])
def test_memory_does_not_grow_with_the_length_of_a_stream(leak: int, code: int) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "predict_memory.py"
    run = [sys.executable, str(script), "--documents", "5000", "--leak", str(leak)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr


def test_models_are_listed_and_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small_model(DETECTOR)
    (tmp_path / "little").symlink_to(folder)
    monkeypatch.setenv("SPANDET_MODELS", str(tmp_path))
    listing = json.loads(succeeds("models", "--json"))
    (listed,) = [model for model in listing if model["name"] == "little"]
    assert listed["origin"] == "local"
    assert listed["detector"] == DETECTOR
    assert listed["dev_f1"] > 0.5
    assert "place" in listed["labels"]
    assert "little" in succeeds("models")
    assert succeeds("models", "little").startswith("---\nlibrary_name: spandet")
    (tmp_path / "in.txt").write_text("Tibburn.")
    assert json.loads(succeeds("predict", "little", tmp_path / "in.txt"))["text"] == "Tibburn."


@pytest.mark.parametrize("target", ["/dev/null", "-"])
def test_output_to_dev_null_needs_no_spool(target: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Tibburn.")
    arguments = ("predict", small_model(DETECTOR), tmp_path / "in.txt", "-o", target)
    succeeds(*arguments, "--to", "jsonl")
    assert not Path("/dev/null.spool").exists()
