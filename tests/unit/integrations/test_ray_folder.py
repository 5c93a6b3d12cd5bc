"""The folder of a job on Ray, as the next run finds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spandet.errors import UsageError
from spandet.integrations.ray_engine import RayJob, _prepare, _Work
from spandet.integrations.shards import Shard, write_part
from spandet.text import Document

SHARDS = [Shard(number, "jsonl", "corpus.jsonl", 10 * number, 10) for number in range(3)]
MANIFEST = {"model": "one"}


def left(folder: Path, *, resume: bool) -> list[int]:
    work = _Work(str(folder), "jsonl", RayJob(resume=resume))
    return [shard.number for shard in _prepare(work, SHARDS, MANIFEST)]


def draft_of(folder: Path, name: str) -> str:
    """What a part is called while it is being written."""
    seen: list[str] = []

    def documents() -> Iterator[Document]:
        seen.extend(path.name for path in folder.glob(".part-*"))
        yield Document("a")

    write_part(documents(), str(folder), name)
    (found,) = seen
    return found


def test_what_a_killed_run_has_begun_is_removed(tmp_path: Path) -> None:
    assert left(tmp_path, resume=False) == [0, 1, 2]
    draft = draft_of(tmp_path, "part-000001.jsonl")
    (tmp_path / draft).write_text("half")
    with pytest.raises(UsageError, match="is not empty"):
        left(tmp_path, resume=False)
    assert left(tmp_path, resume=True) == [0, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "_spandet.json",
        "part-000001.jsonl",
    ]
