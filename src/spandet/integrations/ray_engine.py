"""`spandet predict` on a Ray cluster, for very large corpora; needs the extra "ray".

The corpus is split into shards (see `shards`). Each worker loads the model once, then reads and
predicts one shard after another and writes each as a part; a shard whose worker dies is assigned to
another one. The output is a folder of parts: concatenated, they equal the output of a plain run.
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
from spandet.integrations.parts import PartReport, predict_part
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.integrations.shards import Shard


class RayJob(PredictOptions):
    """Options of a prediction on a cluster."""

    to: Literal["jsonl", "parquet"] | None = None
    """Format of the parts; None: the format of the input."""
    skip_bad: bool = False
    """Skip bad records and documents."""
    shard_bytes: Positive = Field(default=4 << 20)
    """Size of a shard of a JSONL file; a worker that dies loses at most one shard."""
    workers: Positive | None = None
    """Maximum number of workers, with a model each; None: as many as the cluster has room for."""
    cpus_per_worker: Positive = 1
    """CPUs, and threads of torch, per worker."""
    gpus_per_worker: Weight = 0
    """GPUs per worker; with a fraction, several workers share a GPU."""
    device: str | None = None
    """Device of each worker; None: its GPU if it has one, else its CPUs."""
    retries: int = Field(default=3, ge=0)
    """Number of new attempts for a shard whose worker has died."""
    resume: bool = False
    """Keep the parts that an earlier run of the same job has finished."""


@dataclass(slots=True)
class RayReport:
    """Counts of a run."""

    parts: int = 0
    """Parts that the run has written."""
    kept: int = 0
    """Parts of an earlier run."""
    documents: int = 0
    """Documents of all parts; the counts below are of all parts, too."""
    entities: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    """The first bad records and documents."""

    @classmethod
    def of(cls, made: Sequence[PartReport], kept: Sequence[PartReport]) -> RayReport:
        """The sum over new parts and those of an earlier run."""
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
    on_part: Callable[[PartReport, int], None] | None = None,
) -> RayReport:
    """Predict a corpus on the cluster at RAY_ADDRESS, or on this machine if it is not set.

    Args:
        model: A model, as for `Recognizer.from_pretrained`; this process sends it to the workers.
        inputs: JSONL or Parquet files, or folders of them, that every worker can read.
        output: A new or empty folder that every worker can write.
        job: Options of the job.
        overrides: Settings of the model to change.
        on_part: Called after every finished part, with the number of all parts.

    Raises:
        UsageError: An argument is invalid, or another process writes this output; nothing has
            been written.
        FormatError: A record is bad; finished parts are kept for `resume`.
        SpandetError: The cluster failed.
    """
    names = list(inputs)
    refuse_overwriting(names, output)
    with _one_writer(output):
        return _run_locked(model, names, output, job, overrides, on_part)


def _run_locked(
    model: str | os.PathLike[str],
    inputs: Sequence[str],
    output: str,
    job: RayJob,
    overrides: Iterable[str],
    on_part: Callable[[PartReport, int], None] | None,
) -> RayReport:
    """`run_ray` while the output folder is locked."""
    ray = _ray()
    from spandet.inference.recognizer import Recognizer  # noqa: PLC0415 (torch)
    from spandet.integrations.shards import plan  # noqa: PLC0415 (pyarrow, which comes with ray)

    recognizer = Recognizer.from_pretrained(model, overrides)
    recognizer.predict([], job)  # raises an error if the model does not know a label
    shards = plan(inputs, shard_bytes=job.shard_bytes)
    kind = job.to or _common_kind(shards)
    files = packed(recognizer)
    work = _Work(output if "://" in output else str(Path(output).absolute()), kind, job)
    left, kept = _prepare(work, shards, _manifest(files, shards, work))
    made: list[PartReport] = []
    with _cluster(ray):
        for part in _run(ray, files, work, left):
            made.append(part)
            if on_part is not None:
                on_part(part, len(left))
    _check_complete(work, shards)
    return RayReport.of(made, kept)


@dataclass(frozen=True, slots=True)
class _Work:
    """What all workers have in common: output folder, format and options."""

    folder: str
    kind: Literal["jsonl", "parquet"]
    job: RayJob


class _Worker:
    """A worker with a model; Ray runs each in its own process."""

    def __init__(self, files: Any, work: _Work) -> None:
        device = work.job.device or ("cuda" if work.job.gpus_per_worker else None)
        self._recognizer = unpacked(_ray().get(files), device=device)
        self._work = work

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Predict shards and return reports, both as JSON, which Ray transports unchanged."""
        from spandet.integrations.shards import Shard  # noqa: PLC0415

        made = [self._part(Shard(**json.loads(shard))) for shard in batch["shard"]]
        return {"part": [json.dumps(asdict(part)) for part in made]}

    def _part(self, shard: Shard) -> PartReport:
        from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
        from spandet.integrations.shards import part_name  # noqa: PLC0415

        work = self._work
        folder, name = PartFolder(work.folder), part_name(shard, work.kind)
        return predict_part(shard, self._predict, folder, name, skip_bad=work.job.skip_bad)

    def _predict(self, documents: Iterable[Document]) -> Iterator[Document]:
        return self._recognizer.predict(documents, self._work.job)


def _run(
    ray: ModuleType, files: Mapping[str, bytes], work: _Work, shards: Sequence[Shard]
) -> Iterator[PartReport]:
    if not shards:
        return
    job, data = work.job, import_module("ray.data")
    workers = min(job.workers or _max_workers(ray, job), len(shards))
    reference = ray.put(files)  # kept by this process, so that a restarted worker can load it
    rows = [{"shard": json.dumps(asdict(shard))} for shard in shards]
    dataset = data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Worker,
        batch_size=1,
        fn_constructor_args=(reference, work),
        compute=data.ActorPoolStrategy(
            min_size=1, max_size=workers, initial_size=workers, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=job.cpus_per_worker,
        num_gpus=job.gpus_per_worker,
        max_restarts=-1,
        max_task_retries=job.retries,
    )
    dataset.context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it logs every step
    try:
        for row in dataset.iter_rows():
            part = PartReport(**json.loads(row["part"]))
            if part.error is not None:
                raise (UsageError if part.usage else FormatError)(part.error)
            yield part
    except ray.exceptions.RayError as error:
        what = str(error).strip().splitlines()[-1]
        raise SpandetError(
            f"Ray failed ({what}); the finished parts in {work.folder} are valid, and --resume "
            "continues the job"
        ) from error


def _max_workers(ray: ModuleType, job: RayJob) -> int:
    """Number of workers that the cluster has room for."""
    resources = ray.cluster_resources()
    cpus, gpus = resources.get("CPU", 0), resources.get("GPU", 0)
    workers = cpus // job.cpus_per_worker
    if job.gpus_per_worker:
        workers = min(workers, gpus // job.gpus_per_worker)
    if workers < 1:
        raise UsageError(
            f"the cluster has {cpus:g} CPUs and {gpus:g} GPUs, a worker needs "
            f"{job.cpus_per_worker} and {job.gpus_per_worker:g}"
        )
    return int(workers)


def _manifest(files: Mapping[str, bytes], shards: Sequence[Shard], work: _Work) -> dict[str, Any]:
    """Model, options and inputs of the job, which must be equal for `resume`."""
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
) -> tuple[list[Shard], list[PartReport]]:
    """Create the output folder; returns the shards to predict and the reports of finished parts."""
    from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
    from spandet.integrations.shards import part_name  # noqa: PLC0415

    folder = PartFolder(work.folder)
    folder.open(manifest, resume=work.job.resume)
    left: list[Shard] = []
    kept: list[PartReport] = []
    for shard in shards:
        facts = folder.facts(part_name(shard, work.kind)) if work.job.resume else None
        # A shard with bad records must fail in a run that does not skip them.
        if facts is None or (facts["skipped"] and not work.job.skip_bad):
            left.append(shard)
        else:
            kept.append(PartReport(**facts))
    return left, kept


def _check_complete(work: _Work, shards: Sequence[Shard]) -> None:
    from spandet.integrations.part_folder import PartFolder  # noqa: PLC0415
    from spandet.integrations.shards import part_name  # noqa: PLC0415

    names = [part_name(shard, work.kind) for shard in shards]
    if missing := PartFolder(work.folder).missing(names):
        raise SpandetError(f"{missing[0]} has disappeared from {work.folder}: run with --resume")


def _common_kind(shards: Sequence[Shard]) -> Literal["jsonl", "parquet"]:
    kinds = {shard.kind for shard in shards}
    return "parquet" if kinds == {"parquet"} else "jsonl"


def _one_writer(output: str) -> AbstractContextManager[None]:
    """The lock of the output folder; folders of other file systems are not locked."""
    if output.startswith("file:"):
        return one_writer(url2pathname(urlsplit(output).path))
    return nullcontext() if "://" in output else one_writer(output)


@contextmanager
def _cluster(ray: ModuleType) -> Iterator[None]:
    """Use the cluster that is connected already or that RAY_ADDRESS names, or start a local one."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
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
