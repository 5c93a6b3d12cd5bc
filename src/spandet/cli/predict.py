"""spandet predict MODEL INPUT: find entities in documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Input, SkipBad, ToFormat
from spandet.cli.terminal import progress, report_skipped
from spandet.formats import read, write

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="OUT", help="A file, or - for standard output.")
]
BatchPieces = Annotated[
    int, typer.Option("--batch-pieces", min=1, help="How much to encode at once; a GPU likes more.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="section.key=value", help="Change a setting of the model; repeatable."
    ),
]


def predict_command(
    model: Model,
    input_: Input,
    output: Output = "-",
    from_: FromFormat = None,
    to: ToFormat = None,
    skip_bad: SkipBad = False,
    batch_pieces: BatchPieces = 768,
    set_: Set = None,
) -> None:
    """Find entities in text or in any corpus; what it had of its own is replaced."""
    from spandet.recognizer import Recognizer

    corpus = read(input_, from_, skip_bad=skip_bad)
    recognizer = Recognizer.from_pretrained(model, set_ or ())
    found = recognizer.predict(corpus, batch_pieces=batch_pieces)
    write(progress(found, "predicting"), output, to)
    report_skipped(corpus)
