"""spandet predict --engine ray: the same job on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spandet.cli.terminal import note, note_mean_threshold, report_skipped
from spandet.errors import UsageError

if TYPE_CHECKING:
    from spandet.integrations.parts import PartReport
    from spandet.jobs import JobOptions

_FORMATS = ("jsonl", "parquet")


def predict_on_ray(
    model: str,
    inputs: Sequence[str],
    output: str,
    options: JobOptions,
    *,
    from_: str | None,
    to: str | None,
    resume: bool,
    overwrite: bool,
    skip_bad: bool,
    workers: int | None,
    shard_bytes: int,
) -> int:
    """Write a folder of parts; returns the number of bad records that were skipped."""
    from spandet.inference.model_names import find_models
    from spandet.integrations.ray_engine import RayJob, run_ray

    if output == "-":
        raise UsageError("--engine ray writes a folder of parts: name a new one with -o")
    if overwrite:
        raise UsageError("--engine ray overwrites nothing: name a new folder with -o")
    for option, name in (("--from", from_), ("--to", to)):
        if name not in (None, *_FORMATS):
            raise UsageError(f"{option} is {name}, expected {' or '.join(_FORMATS)} with ray")
    values = {
        "to": to,
        "resume": resume,
        "skip_bad": skip_bad,
        "workers": workers,
        "shard_bytes": shard_bytes,
        **options.model_dump(exclude={"overrides"}),
    }
    job = RayJob.build(values, where="engine ray")
    shown = _show if sys.stderr.isatty() else None
    report = run_ray(model, inputs, output, job, overrides=options.overrides, on_part=shown)
    note_mean_threshold(find_models(model), options.overrides, options.min_score)
    report_skipped(report.skipped, report.problems)
    return report.skipped


def _show(part: PartReport, total: int) -> None:
    note(f"part {part.number}: {part.documents:,} documents ({total:,} parts in all)")
