"""spandet ensemble MODEL...: several models as one, with a threshold tuned on dev data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.options import Device, FromFormat, Json
from spandet.cli.terminal import note, show
from spandet.formats import read
from spandet.formats.locking import check_no_writer

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...", help="Two or more models; one named twice has twice the weight."
    ),
]
Dev = Annotated[
    str, typer.Option("--dev", metavar="FILE", help="Labelled data to tune the threshold on.")
]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder to write; new or empty.")
]


def ensemble_command(
    models: Models,
    dev: Dev,
    out: Out,
    from_: FromFormat = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Combine models: the mean of their span scores, one threshold tuned on dev data.

    DIR names the models and is used like any model; it has no weights of its own.
    """
    check_no_writer(out)
    documents = list(read(dev, from_))
    # torch takes seconds to load: errors in the input files come first.
    from spandet.inference.ensemble_tuning import tune_ensemble

    name = Path(dev).name
    report = tune_ensemble(models, documents, out, data=name, device=device, notify=note)
    show(report, json_=json_, markdown=False, html=None)
