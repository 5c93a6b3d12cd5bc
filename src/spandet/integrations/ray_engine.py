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
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pydantic import Field

from spandet.config import Positive, Weight
from spandet.errors import FormatError, MissingExtraError, SpandetError, UsageError
from spandet.formats.corpus import SHOWN_SKIPS
from spandet.formats.locking import one_writer
from spandet.formats.overwriting import refuse_overwriting
from spandet.inference.options import EntityOptions, PredictOptions
from spandet.integrations.model_files import packed, unpacked
from spandet.integrations.parts import PartDone, make_part
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.integrations.shards import Shard


class RayJob(PredictOptions):
    """How a corpus is predicted on a cluster."""

    to: Literal["jsonl", "parquet"] | None = None
    """Format of the parts; that of the input, unless given."""
    skip_bad: bool = False
    """Pass over bad records and documents."""
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


@dataclass(slots=True)
class RayReport:
    """What a run has done."""

    parts: int = 0
    kept: int = 0
    """Parts that were there already."""
    documents: int = 0
    """Of all parts, like what follows."""
    entities: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    """The first bad records and documents."""

    @classmethod
    def of(cls, made: Sequence[PartDone], kept: Sequence[PartDone]) -> RayReport:
        """What new parts and those of an earlier run are together, in the order of the input."""
        parts = sorted([*made, *kept], key=lambda part: part.number)
        problems = [problem for part in parts for problem in part.problems]
        return cls(
            len(made),
            len(kept),
            sum(part.documents for part in parts),
            sum(part.entities for part in parts),
            sum(part.skipped for part in parts),
            problems[:SHOWN_SKIPS],
        )


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
        UsageError: an argument cannot be used, or another process writes this output; nothing has
            been written.
        FormatError: a bad record; the parts that were finished stay, for `resume`.
        SpandetError: the cluster has given up.
    """
    names = list(inputs)
    refuse_overwriting(names, output)
    with _one_writer(output):
        return _run_alone(model, names, output, job, overrides, on_part)


def _run_alone(
    model: str | os.PathLike[str],
    inputs: Sequence[str],
    output: str,
    job: RayJob,
    overrides: Iterable[str],
    on_part: Callable[[PartDone, int], None] | None,
) -> RayReport:
    """The same, while no other process writes the output."""
    ray = _ray()
    from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (torch)
    from spandet.integrations import shards  # noqa: PLC0415 (pyarrow, which comes with ray)

    recognizer = Recognizer.from_pretrained(model, overrides)
    recognizer.predict([], job)  # raises an error if the model does not know a label
    pieces = shards.plan(inputs, shard_bytes=job.shard_bytes)
    kind = job.to or _common_kind(pieces)
    files = packed(recognizer)
    work = _Work(output if "://" in output else str(Path(output).absolute()), kind, job)
    left, kept = _prepare(work, pieces, _manifest(files, pieces, work))
    made: list[PartDone] = []
    with _cluster(ray):
        for part in _run(ray, files, work, left):
            made.append(part)
            if on_part is not None:
                on_part(part, len(left))
    _check_complete(work, pieces)
    return RayReport.of(made, kept)


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
        from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
        from spandet.integrations.shards import part_name  # noqa: PLC0415

        work = self._work
        folder, name = PartFolder(work.folder), part_name(shard, work.kind)
        return make_part(shard, self._found, folder, name, skip_bad=work.job.skip_bad)

    def _found(self, documents: Iterable[Document]) -> Iterator[Document]:
        return self._recognizer.predict(documents, self._work.job)


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
    from spandet.integrations.shards import digest_of  # noqa: PLC0415

    model = hashlib.sha256()
    for name, data in files.items():
        model.update(f"{name}\0{len(data)}\0".encode() + data)
    settings = work.job.model_dump(include=set(EntityOptions.model_fields), mode="json")
    return {
        "model": model.hexdigest(),
        "to": work.kind,
        **settings,
        "shards": [[shard.kind, shard.path, shard.start, shard.end] for shard in shards],
        "input_contents": {
            path: digest_of(path) for path in sorted({shard.path for shard in shards})
        },
    }


def _prepare(
    work: _Work, shards: Sequence[Shard], manifest: Mapping[str, Any]
) -> tuple[list[Shard], list[PartDone]]:
    """Make the folder; which shards are still to do, and which parts are there already?"""
    from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
    from spandet.integrations.shards import part_name  # noqa: PLC0415

    folder = PartFolder(work.folder)
    folder.open(manifest, resume=work.job.resume)
    left: list[Shard] = []
    kept: list[PartDone] = []
    for shard in shards:
        facts = folder.facts(part_name(shard, work.kind)) if work.job.resume else None
        # A shard with bad records must end a run that does not pass over them.
        if facts is None or (facts["skipped"] and not work.job.skip_bad):
            left.append(shard)
        else:
            kept.append(PartDone(**facts))
    return left, kept


def _check_complete(work: _Work, shards: Sequence[Shard]) -> None:
    from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
    from spandet.integrations.shards import part_name  # noqa: PLC0415

    names = [part_name(shard, work.kind) for shard in shards]
    if missing := PartFolder(work.folder).missing(names):
        raise SpandetError(f"{missing[0]} is no longer in {work.folder}: --resume makes it again")


def _common_kind(shards: Sequence[Shard]) -> Literal["jsonl", "parquet"]:
    kinds = {shard.kind for shard in shards}
    return "parquet" if kinds == {"parquet"} else "jsonl"


def _one_writer(output: str) -> AbstractContextManager[None]:
    """The lock of the folder; what is behind a URI of another machine has none."""
    if output.startswith("file:"):
        return one_writer(url2pathname(urlsplit(output).path))
    return nullcontext() if "://" in output else one_writer(output)


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
