"""`spandet predict` on a Ray cluster, for corpora larger than a machine; needs the extra "ray".

The corpus is cut into shards (see `shards`). Each worker loads the model once, then reads, predicts
and writes one shard after another; a shard whose worker dies is given to another one. The result is
a folder of parts, which together are what the plain run writes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from spandet.config import Positive, Settings, Share, Weight
from spandet.errors import FormatError, MissingExtraError, SpandetError, UsageError
from spandet.formats.corpus import SHOWN_SKIPS
from spandet.integrations.model_files import packed, unpacked
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.integrations.shards import Shard

_MANIFEST = "_spandet.json"


class RayJob(Settings):
    """How a corpus is worked through."""

    to: Literal["jsonl", "parquet"] | None = None
    """Format of the parts; that of the input, unless given."""
    min_score: Share | None = None
    """Only entities surer than this, in place of the model's threshold."""
    labels: tuple[str, ...] | None = None
    """Only these."""
    batch_pieces: Positive = 768
    """How much to encode at once."""
    skip_bad: bool = False
    """Pass over bad records."""
    shard_bytes: Positive = Field(default=4 << 20)
    """How much of a JSONL file is one part, and what is lost at most when a worker dies."""
    workers: Positive | None = None
    """How many models at work; as many as the cluster has room for, unless given."""
    cpus_per_worker: Positive = 1
    """Processors, and threads of torch, for each."""
    gpus_per_worker: Weight = 0
    """GPUs for each; a fraction lets several share one."""
    device: str | None = None
    """Where each computes; on its GPU, if it has one, unless given."""
    retries: int = Field(default=3, ge=0)
    """How often a shard is tried again after its worker has died."""
    resume: bool = False
    """Keep the parts that an earlier run of the same job has finished."""


@dataclass(frozen=True, slots=True)
class PartDone:
    """What became of one shard."""

    number: int
    documents: int
    entities: int
    skipped: int
    problems: Sequence[str]
    """The first bad records."""
    process: int
    """The worker's process id."""
    error: str | None = None
    usage: bool = False
    """Is the error one of arguments, not of data?"""


@dataclass(slots=True)
class RayReport:
    """What a run has done."""

    parts: int = 0
    kept: int = 0
    """Parts that were there already."""
    documents: int = 0
    entities: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, part: PartDone) -> None:
        """Count one more part."""
        self.parts += 1
        self.documents += part.documents
        self.entities += part.entities
        self.skipped += part.skipped
        self.problems += part.problems[: SHOWN_SKIPS - len(self.problems)]


def run_ray(
    model: str | os.PathLike[str],
    inputs: Iterable[str],
    output: str,
    job: RayJob,
    *,
    overrides: Iterable[str] = (),
    on_part: Callable[[PartDone, int], None] | None = None,
) -> RayReport:
    """Predict a corpus on the cluster that RAY_ADDRESS names, or on this machine.

    Args:
        model: As `Recognizer.from_pretrained` takes it; workers get it from here.
        inputs: JSONL or Parquet files, or folders of them, that every worker can read.
        output: A new or empty folder that every worker can write.
        job: How.
        overrides: Settings of the model to change.
        on_part: Is told of every finished part, and how many there are in all.

    Raises:
        UsageError: an argument cannot be used; nothing has been written.
        FormatError: a bad record; the parts that were finished stay, for `resume`.
        SpandetError: the cluster has given up.
    """
    ray = _ray()
    from spandet.integrations import shards  # noqa: PLC0415 (pyarrow, which comes with ray)
    from spandet.recognizer import Recognizer  # noqa: PLC0415 (torch)

    recognizer = Recognizer.from_pretrained(model, overrides)
    list(recognizer.predict([], min_score=job.min_score, labels=job.labels))  # says what is wrong
    pieces = shards.plan(inputs, shard_bytes=job.shard_bytes)
    kind = job.to or _common_kind(pieces)
    files = packed(recognizer)
    work = _Work(output if "://" in output else str(Path(output).absolute()), kind, job)
    left = _prepare(work, pieces, _manifest(files, pieces, work))
    report = RayReport(kept=len(pieces) - len(left))
    with _cluster(ray):
        for part in _run(ray, files, work, left):
            report.add(part)
            if on_part is not None:
                on_part(part, len(left))
    return report


@dataclass(frozen=True, slots=True)
class _Work:
    """What a worker must know besides its shard."""

    folder: str
    kind: Literal["jsonl", "parquet"]
    job: RayJob


class _Worker:
    """One model at work. Ray keeps it in a process of its own."""

    def __init__(self, files: Any, work: _Work) -> None:
        device = work.job.device or ("cuda" if work.job.gpus_per_worker else None)
        self._recognizer = unpacked(_ray().get(files), device=device)
        self._work = work

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Shards to reports, both in JSON, which Ray carries without touching it."""
        from spandet.integrations.shards import Shard  # noqa: PLC0415

        made = [self._part(Shard(**json.loads(shard))) for shard in batch["shard"]]
        return {"part": [json.dumps(asdict(part)) for part in made]}

    def _part(self, shard: Shard) -> PartDone:
        from spandet.integrations.shards import part_name, write_part  # noqa: PLC0415

        tally = _Tally()
        error, usage = None, False
        try:
            found = self._found(tally.good(shard, skip_bad=self._work.job.skip_bad))
            write_part(tally.counted(found), self._work.folder, part_name(shard, self._work.kind))
        except SpandetError as problem:
            error, usage = str(problem), isinstance(problem, UsageError)
        return PartDone(
            shard.number,
            tally.documents,
            tally.entities,
            tally.skipped,
            tally.bad,
            os.getpid(),
            error,
            usage,
        )

    def _found(self, documents: Iterable[Document]) -> Iterator[Document]:
        job = self._work.job
        return self._recognizer.predict(
            documents, batch_pieces=job.batch_pieces, min_score=job.min_score, labels=job.labels
        )


@dataclass(slots=True)
class _Tally:
    """Counts what passes."""

    documents: int = 0
    entities: int = 0
    skipped: int = 0
    bad: list[str] = field(default_factory=list)
    """The first of them."""

    def good(self, shard: Shard, *, skip_bad: bool) -> Iterator[Document]:
        for parsed in shard.read():
            if isinstance(parsed, Document):
                yield parsed
            elif skip_bad:
                self.skipped += 1
                if len(self.bad) < SHOWN_SKIPS:
                    self.bad.append(str(parsed))
            else:
                raise parsed

    def counted(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self.documents += 1
            self.entities += len(document.entities)
            yield document


def _run(
    ray: ModuleType, files: Mapping[str, bytes], work: _Work, shards: Sequence[Shard]
) -> Iterator[PartDone]:
    if not shards:
        return
    job, data = work.job, import_module("ray.data")
    most = min(job.workers or _room(ray, job), len(shards))
    reference = ray.put(files)  # held here, so that a worker that is restarted finds it
    rows = [{"shard": json.dumps(asdict(shard))} for shard in shards]
    dataset = data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Worker,
        batch_size=1,
        fn_constructor_args=(reference, work),
        compute=data.ActorPoolStrategy(
            min_size=1, max_size=most, initial_size=most, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=job.cpus_per_worker,
        num_gpus=job.gpus_per_worker,
        max_restarts=-1,
        max_task_retries=job.retries,
    )
    dataset.context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of every step
    try:
        for row in dataset.iter_rows():
            part = PartDone(**json.loads(row["part"]))
            if part.error is not None:
                raise (UsageError if part.usage else FormatError)(part.error)
            yield part
    except ray.exceptions.RayError as error:
        what = str(error).strip().splitlines()[-1]
        raise SpandetError(
            f"Ray has given up ({what}); parts in {work.folder} are good, and the job can resume"
        ) from error


def _room(ray: ModuleType, job: RayJob) -> int:
    """How many workers the cluster can hold."""
    has = ray.cluster_resources()
    room = has.get("CPU", 0) // job.cpus_per_worker
    if job.gpus_per_worker:
        room = min(room, has.get("GPU", 0) // job.gpus_per_worker)
    if room < 1:
        raise UsageError(
            f"the cluster has {has.get('CPU', 0):g} CPUs and {has.get('GPU', 0):g} GPUs, a worker "
            f"wants {job.cpus_per_worker} and {job.gpus_per_worker:g}"
        )
    return int(room)


def _manifest(files: Mapping[str, bytes], shards: Sequence[Shard], work: _Work) -> dict[str, Any]:
    """What must be the same for a run to go on where another one stopped."""
    model = hashlib.sha256()
    for name, data in files.items():
        model.update(f"{name}\0{len(data)}\0".encode() + data)
    settings = work.job.model_dump(include={"min_score", "labels", "skip_bad"}, mode="json")
    return {
        "model": model.hexdigest(),
        "to": work.kind,
        **settings,
        "shards": [[shard.kind, shard.path, shard.start, shard.end] for shard in shards],
    }


def _prepare(work: _Work, shards: Sequence[Shard], manifest: Mapping[str, Any]) -> list[Shard]:
    """Make the folder; which shards are still to do?"""
    from pyarrow import fs  # noqa: PLC0415

    from spandet.integrations.shards import is_draft, located, part_name  # noqa: PLC0415

    system, place = located(work.folder)
    system.create_dir(place, recursive=True)
    there = {info.base_name for info in system.get_file_info(fs.FileSelector(place))}
    if there and not work.job.resume:
        raise UsageError(f"{work.folder} is not empty: give a new folder, or go on with --resume")
    if there:
        if _MANIFEST not in there:
            raise UsageError(f"{work.folder} is not the folder of a job on Ray: nothing to resume")
        with system.open_input_stream(f"{place}/{_MANIFEST}") as stream:
            earlier = json.loads(stream.read())
        other = sorted(key for key in manifest if earlier.get(key) != manifest[key])
        if other:
            raise UsageError(f"{work.folder} is of another job: not the same {', '.join(other)}")
        for name in filter(is_draft, there):  # of a run that was killed
            system.delete_file(f"{place}/{name}")
    else:
        with system.open_output_stream(f"{place}/{_MANIFEST}") as out:
            out.write(json.dumps(manifest).encode())
    return [shard for shard in shards if part_name(shard, work.kind) not in there]


def _common_kind(shards: Sequence[Shard]) -> Literal["jsonl", "parquet"]:
    kinds = {shard.kind for shard in shards}
    return "parquet" if kinds == {"parquet"} else "jsonl"


@contextmanager
def _cluster(ray: ModuleType) -> Iterator[None]:
    """The cluster that is connected already, or that RAY_ADDRESS names, or one of our own."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    own = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
    ray.init(logging_level="WARNING", log_to_driver=False, **own)
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> ModuleType:
    try:
        return import_module("ray")
    except ImportError:
        raise MissingExtraError(needs="the engine ray", extra="ray") from None
