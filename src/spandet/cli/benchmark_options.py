"""Arguments that several commands of `spandet benchmark` share."""

from __future__ import annotations

from typing import Annotated

import typer

Data = Annotated[str, typer.Argument(metavar="DATA", help="Annotated documents, in any format.")]
Timed = Annotated[
    int, typer.Option("--timed", min=1, help="About how many sentences to time, of all lengths.")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Sentences of a timed batch.")]
Rounds = Annotated[
    int, typer.Option("--rounds", min=1, help="How often each batch is timed; the best counts.")
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Of the processor.")]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths",
        metavar="16,64,256",
        help="Also time the detector alone on made-up sentences of so many words.",
    ),
]
