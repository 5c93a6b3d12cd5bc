"""spandet predict MODEL INPUT...: find entities in documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spandet.cli.options import Device, FromFormat, Model, Set, SkipBad, ToFormat, takes
from spandet.cli.terminal import note, note_mean_threshold, report_skipped
from spandet.inference.options import PredictOptions

if TYPE_CHECKING:
    from spandet.jobs import JobOptions

Inputs_ = Annotated[
    list[str],
    typer.Argument(metavar="INPUT...", help="Files, folders, or - for standard input."),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="OUT", help="A file, or - for standard output.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run to OUT.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Start again, and discard an interrupted run to OUT.")
]

Engine = Annotated[
    Literal["local", "ray"],
    typer.Option("--engine", help="ray: on a cluster, from JSONL or Parquet to a folder of parts."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="With --engine ray: maximum number of workers."),
]
ShardBytes = Annotated[
    int, typer.Option("--shard-bytes", min=1, help="With --engine ray: bytes of JSONL per part.")
]

SKIPPED, INTERRUPTED = 3, 130


@takes(PredictOptions)
def predict_command(
    model: Model,
    inputs: Inputs_,
    output: Output = "-",
    from_: FromFormat = None,
    to: ToFormat = None,
    *,
    options: PredictOptions,
    device: Device = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    skip_bad: SkipBad = False,
    set_: Set = None,
    engine: Engine = "local",
    workers: Workers = None,
    shard_bytes: ShardBytes = 4 << 20,
) -> None:
    """Find entities in text or in any corpus; entities of the corpus are replaced.

    Exit codes: 0 success, 1 bad data, 2 bad argument, 3 finished, but bad
    records were skipped (--skip-bad), 130 interrupted: continue with --resume.
    """
    from spandet.jobs import JobOptions, is_stream

    job = JobOptions(**dict(options), device=device, overrides=tuple(set_ or ()))
    run: Callable[..., int] = _predict_here
    if engine == "ray":
        from spandet.cli.predict_ray import predict_on_ray

        run = partial(predict_on_ray, workers=workers, shard_bytes=shard_bytes)
    try:
        skipped = run(
            model,
            inputs,
            output,
            job,
            from_=from_,
            to=to,
            resume=resume,
            overwrite=overwrite,
            skip_bad=skip_bad,
        )
    except KeyboardInterrupt:
        kept = "" if is_stream(output) else ": the same command with --resume continues"
        note(f"interrupted{kept}")
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(SKIPPED if skipped else 0)


def _predict_here(
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
) -> int:
    """Write the output; returns the number of records and documents that were skipped."""
    from spandet.jobs import Inputs, Job

    job = Job(Inputs.of(inputs, from_, skip_bad=skip_bad), output, to, options)
    with job.locked():
        job.check(resume=resume, overwrite=overwrite)
        from spandet.inference.model_names import find_models, is_flat, joint_fingerprint

        folders = find_models(model)
        job.check_overlaps(flat=all(is_flat(folder, options.overrides) for folder in folders))
        note_mean_threshold(folders, options.overrides, options.min_score)
        # Imported after inputs and output are checked, because torch takes seconds to load.
        from spandet.inference.recognizer import Recognizer

        recognizer = Recognizer.from_pretrained(folders, options.overrides, device=options.device)
        job.run(recognizer, joint_fingerprint(folders), resume=resume, show=sys.stderr.isatty())
    report_skipped(job.skips, job.skipped)
    return job.skips
