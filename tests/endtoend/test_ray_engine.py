"""A corpus on a local Ray cluster: the output equals that of a plain run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import spandet
from spandet.cli import app
from spandet.errors import FormatError, UsageError
from spandet.integrations.parts import PartReport
from spandet.integrations.ray_engine import RayJob, run_ray
from spandet.text import Document
from support.local_ray import IGNORED, at_most, local_ray
from support.small_models import small_documents, small_model

pytestmark = IGNORED


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    with at_most(600):
        local_ray()
        yield


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    return [
        Document(document.text, id=str(number), metadata={"n": number})
        for number, document in enumerate(small_documents(40))
    ]


@pytest.fixture(scope="module")
def plain(corpus: list[Document]) -> list[Document]:
    return list(spandet.Recognizer.from_pretrained(small_model("locate-and-label")).predict(corpus))


@pytest.fixture
def source(corpus: list[Document], tmp_path: Path) -> str:
    spandet.write(corpus, tmp_path / "corpus.jsonl")
    return str(tmp_path / "corpus.jsonl")


def run(inputs: list[str], output: Path, on_part: Any = None, **job: Any) -> Any:
    model = small_model("locate-and-label")
    return run_ray(model, inputs, str(output), RayJob(**job), on_part=on_part)


def assert_same(folder: Path, plain: list[Document]) -> None:
    """Scores are equal as far as batches of other shapes agree."""
    made = list(spandet.read(folder, "jsonl"))
    assert [(d.id, d.text, d.metadata) for d in made] == [(d.id, d.text, d.metadata) for d in plain]
    for one, other in zip(made, plain, strict=True):
        assert [(e.spans, e.label) for e in one.entities] == [
            (e.spans, e.label) for e in other.entities
        ]
        scores = [e.score for e in other.entities]
        assert [e.score for e in one.entities] == pytest.approx(scores, abs=1e-5)


def test_the_parts_equal_the_output_of_a_plain_run(
    source: str, plain: list[Document], tmp_path: Path
) -> None:
    report = run([source], tmp_path / "out", shard_bytes=600, workers=2)
    parts = sorted((tmp_path / "out").glob("part-*.jsonl"))
    assert report.parts == len(parts) > 4
    assert report.documents == len(plain)
    assert report.entities == sum(len(document.entities) for document in plain) > 0
    assert_same(tmp_path / "out", plain)


def test_parquet_input_and_output(plain: list[Document], source: str, tmp_path: Path) -> None:
    run([source], tmp_path / "first", to="parquet")
    run([(tmp_path / "first").as_uri()], tmp_path / "second")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(tmp_path / "second").to_pylist()
    for row, document in zip(rows, plain, strict=True):
        assert (row["id"], row["text"]) == (document.id, document.text)
        assert json.loads(row["metadata_json"]) == document.metadata
        assert [(e["start"], e["end"], e["label"]) for e in row["entities"]] == [
            (e.span.start, e.span.end, e.label) for e in document.entities
        ]


def test_the_shards_of_a_killed_worker_are_predicted_by_another(
    corpus: list[Document], plain: list[Document], tmp_path: Path
) -> None:
    times = 8  # enough work that it is not finished when the first part is reported
    spandet.write(corpus * times, tmp_path / "corpus.jsonl")
    source = str(tmp_path / "corpus.jsonl")
    processes: list[int] = []

    def kill_first_worker(part: PartReport, total: int) -> None:
        processes.append(part.process)
        if len(processes) == 1:
            os.kill(part.process, signal.SIGKILL)

    report = run([source], tmp_path / "out", on_part=kill_first_worker, shard_bytes=300, workers=1)
    assert len(set(processes)) == 2
    assert report.documents == times * len(plain)
    assert_same(tmp_path / "out", plain * times)


def test_a_bad_record_stops_the_run_and_resume_keeps_finished_parts(
    source: str, corpus: list[Document], tmp_path: Path
) -> None:
    text = Path(source).read_text()
    Path(source).write_text(text + '{"text": 5}\n')
    with pytest.raises(FormatError, match=r"corpus\.jsonl from byte .*: text is 5, expected"):
        run([source], tmp_path / "out", shard_bytes=1000, workers=1)
    done = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    with pytest.raises(UsageError, match="is not empty"):
        run([source], tmp_path / "out", shard_bytes=1000)
    again = {"shard_bytes": 1000, "resume": True, "skip_bad": True, "workers": 1}
    report = run([source], tmp_path / "out", **again)
    assert report.kept == len(done)
    assert (report.documents, report.skipped) == (len(corpus), 1)
    for name, time in done.items():
        assert (tmp_path / "out" / name).stat().st_mtime_ns == time
    texts = [document.text for document in spandet.read(tmp_path / "out", "jsonl")]
    assert texts == [document.text for document in corpus]
    with pytest.raises(UsageError, match="another job: not the same min_score"):
        run([source], tmp_path / "out", **again, min_score=0.5)


def test_bad_records_can_be_skipped(source: str, plain: list[Document], tmp_path: Path) -> None:
    with Path(source).open("a") as out:
        out.write("nonsense\n")
    report = run([source], tmp_path / "out", skip_bad=True)
    assert (report.documents, report.skipped) == (len(plain), 1)
    assert "not JSON" in report.problems[0]


def test_user_mistakes_are_errors_before_anything_is_written(source: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cheese"):
        run([source], tmp_path / "out", labels=("cheese",))
    with pytest.raises(UsageError, match="no such file"):
        run([str(tmp_path / "gone.jsonl")], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="a worker needs 64 and 0"):
        run([source], tmp_path / "out", cpus_per_worker=64)


def test_the_command(source: str, plain: list[Document], tmp_path: Path) -> None:
    command = ["predict", str(small_model("locate-and-label")), source, "--engine", "ray"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert_same(tmp_path / "out", plain)
    for wrong, words in (
        ([], "name a new one with -o"),
        (["-o", str(tmp_path / "new"), "--to", "brat"], "--to is brat, expected jsonl or parquet"),
        (["-o", str(tmp_path / "new"), "--overwrite"], "overwrites nothing"),
    ):
        done = CliRunner().invoke(app, [*command, *wrong])
        assert isinstance(done.exception, UsageError)
        assert words in str(done.exception)
