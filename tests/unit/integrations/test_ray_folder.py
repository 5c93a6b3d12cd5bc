"""The output folder of a job on Ray, and how a run resumes it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spandet import write
from spandet.errors import SpandetError, UsageError
from spandet.formats.locking import one_writer
from spandet.inference import batching
from spandet.integrations.part_folder import PartFolder
from spandet.integrations.parts import PartReport, predict_part
from spandet.integrations.ray_engine import (
    RayJob,
    RayReport,
    _check_complete,
    _manifest,
    _prepare,
    _Work,
    run_ray,
)
from spandet.integrations.shards import Shard, part_name, plan, write_part
from spandet.text import Document
from support.predicting_toys import Fake

KINDS = ["jsonl", "parquet"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documents for three shards, one of them bad."""
    monkeypatch.setattr(batching, "_WINDOW_SENTENCES", 2)
    texts = ["one", "two", "three BAD", "four", "five", "six"]
    write([Document(text, id=str(n)) for n, text in enumerate(texts)], tmp_path / "in.jsonl")
    return tmp_path / "in.jsonl"


class Run:
    """A run of the engine without a cluster."""

    def __init__(self, source: Path, kind: str = "jsonl", **options: bool) -> None:
        self.shards = plan([str(source)], shard_bytes=90)
        job = RayJob.build({"skip_bad": True, **options}, where="test")
        self.work = _Work(str(source.parent / "out"), kind, job)  # type: ignore[arg-type]
        manifest = _manifest({"weights": b"w"}, self.shards, self.work)
        self.left, self.kept = _prepare(self.work, self.shards, manifest)

    def make(self, shards: list[Shard]) -> list[PartReport]:
        folder, kind = PartFolder(self.work.folder), self.work.kind
        return [
            predict_part(
                s, Fake().predict, folder, part_name(s, kind), skip_bad=self.work.job.skip_bad
            )
            for s in shards
        ]

    def finish(self) -> RayReport:
        made = self.make(self.left)
        assert [part.error for part in made] == [None] * len(made)
        _check_complete(self.work, self.shards)
        return RayReport.of(made, self.kept)


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").glob("part-*")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_equals_an_uninterrupted_run(kind: str, source: Path) -> None:
    whole = Run(source, kind).finish()
    wanted = parts(source.parent)
    assert (whole.parts, whole.kept, whole.documents, whole.skipped) == (len(wanted), 0, 5, 1)
    assert len(wanted) > 2
    assert "document 1 (2) of " in whole.problems[0] or "document 3 (2) of " in whole.problems[0]
    for name in wanted:
        (source.parent / "out" / name).unlink()
    again = Run(source, kind, resume=True).finish()
    assert parts(source.parent) == wanted
    assert again == whole
    kept = Run(source, kind, resume=True).finish()
    assert (kept.parts, kept.kept) == (0, len(wanted))
    assert (kept.documents, kept.problems) == (whole.documents, whole.problems)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [_cut, _flipped, Path.unlink])
@pytest.mark.parametrize("file", ["part-000001.{}", ".part-000001.{}.done"])
def test_a_damaged_part_is_predicted_again(
    kind: str, change: Callable[[Path], None], file: str, source: Path
) -> None:
    Run(source, kind).finish()
    wanted = parts(source.parent)
    change(source.parent / "out" / file.format(kind))
    again = Run(source, kind, resume=True)
    assert [shard.number for shard in again.left] == [1]
    again.finish()
    assert parts(source.parent) == wanted


def test_a_change_of_any_byte_of_a_receipt_is_detected(source: Path) -> None:
    Run(source).finish()
    receipt = source.parent / "out" / ".part-000000.jsonl.done"
    data = receipt.read_bytes()
    folder = PartFolder(str(receipt.parent))
    assert folder.facts("part-000000.jsonl") is not None
    for place in range(len(data)):
        receipt.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        assert folder.facts("part-000000.jsonl") is None
        receipt.write_bytes(data[:place])
        assert folder.facts("part-000000.jsonl") is None


def test_a_missing_part_is_detected(source: Path) -> None:
    run = Run(source)
    run.finish()
    (source.parent / "out" / "part-000001.jsonl").unlink()
    with pytest.raises(SpandetError, match=r"part-000001\.jsonl has disappeared from"):
        _check_complete(run.work, run.shards)


def test_without_skip_bad_parts_with_bad_documents_are_predicted_again(source: Path) -> None:
    whole = Run(source)
    whole.finish()
    (bad,) = [shard for shard in whole.shards if "BAD" in str(list(shard.read()))]
    strict = Run(source, resume=True, skip_bad=False)
    assert strict.left == [bad]
    (part,) = strict.make(strict.left)
    assert part.error is not None
    assert part.error.endswith("words overlap")


@pytest.mark.parametrize("change", [_flipped, _cut, lambda path: path.write_text("[" * 99_999)])
def test_a_damaged_manifest_is_refused(source: Path, change: Callable[[Path], None]) -> None:
    Run(source).finish()
    change(source.parent / "out" / "_spandet.json")
    with pytest.raises(UsageError, match=r"is damaged|another job|another version"):
        Run(source, resume=True)


def test_an_older_folder_and_another_input_are_refused(source: Path) -> None:
    Run(source).finish()
    manifest = source.parent / "out" / "_spandet.json"
    older = json.loads(manifest.read_text())
    before = source.read_bytes()
    source.write_bytes(before.replace(b"six", b"666"))
    with pytest.raises(UsageError, match="of another job: not the same input_contents"):
        Run(source, resume=True)
    source.write_bytes(before)
    del older["version"]
    manifest.write_text(json.dumps(older))
    with pytest.raises(UsageError, match="of another version of spandet"):
        Run(source, resume=True)


def draft_of(folder: Path, name: str) -> str:
    """The name of a part's file while it is being written."""
    seen: list[str] = []

    def documents() -> Iterator[Document]:
        seen.extend(path.name for path in folder.glob(".part-*.draft"))
        yield Document("a")

    write_part(documents(), str(folder), name)
    (found,) = seen
    return found


def test_unfinished_files_of_a_killed_run_are_removed(source: Path) -> None:
    out = source.parent / "out"
    out.mkdir()
    draft = draft_of(out, "part-000001.jsonl")
    (out / "part-000001.jsonl").unlink()
    (out / draft).write_text("half")
    with pytest.raises(UsageError, match="is not empty"):
        Run(source)
    Run(source, resume=True)  # killed before the manifest was written
    (out / draft).write_text("half")
    Run(source, resume=True)
    assert [path.name for path in out.iterdir()] == ["_spandet.json"]


def test_concurrent_runs_and_outputs_that_contain_inputs_are_refused(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # the checks come before the import of ray
    folder = str(source.parent / "out")
    for output in (folder, Path(folder).as_uri()):
        with one_writer(folder), pytest.raises(UsageError, match=f"by process {os.getpid()}"):
            run_ray("model", [str(source)], output, RayJob())
    for taken, what in ((source.parent, "contains the input"), (source, "is the input")):
        with pytest.raises(UsageError, match=what):
            run_ray("model", [str(source)], str(taken), RayJob())
    with pytest.raises(UsageError, match="is inside the input folder"):
        run_ray("model", [source.parent.as_uri()], folder, RayJob())
    assert [path.name for path in source.parent.iterdir()] == ["in.jsonl"]
