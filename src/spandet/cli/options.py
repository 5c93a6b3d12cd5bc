"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Input = Annotated[str, typer.Argument(help="A file, a folder, or - for standard input.")]
FromFormat = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help="Format of the input (see `spandet formats`)."),
]
PredictedFrom = Annotated[
    str | None,
    typer.Option("--predicted-from", metavar="FORMAT", help="Format of the predictions."),
]
ToFormat = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="Format of the output.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Pass over bad records; count and list them at the end.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained HTML page.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random generator.")]
Gold = Annotated[str, typer.Argument(help="Gold annotations: a file or a folder.")]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model: its folder, its name, or its hub id.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="section.key=value", help="Change a setting of the model; repeatable."
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score", metavar="SCORE", help="Only entities with a score above this (0 to 1)."
    ),
]
