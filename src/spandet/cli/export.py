"""spandet export MODEL --onnx DIR: a model whose parts run on onnxruntime."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Json, Model, Set
from spandet.cli.terminal import note, show
from spandet.formats import read
from spandet.formats.locking import check_no_writer

Onnx = Annotated[
    Path, typer.Option("--onnx", metavar="DIR", help="The folder to write; new or empty.")
]
Int8 = Annotated[
    bool, typer.Option("--int8", help="Weights of eight bits; needs labelled --data to prove them.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="What to compare on; else our own sentences."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Read so many documents of the data.")
]
MaxLoss = Annotated[
    float,
    typer.Option("--max-loss", min=0, help="Most points of F1 that eight bits may lose."),
]


def export_command(
    model: Model,
    onnx: Onnx,
    int8: Int8 = False,
    data: Data = None,
    from_: FromFormat = None,
    limit: Limit = None,
    max_loss: MaxLoss = 0.5,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Export a model to ONNX. It is accepted only if it finds what torch finds.

    The folder is used like that of any model: predict, trace, serve, from_pretrained.
    """
    check_no_writer(onnx)
    documents = [] if data is None else list(islice(read(data, from_), limit))
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.onnx_export import ExportOptions, export

    report = export(
        model,
        onnx,
        data=documents,
        options=ExportOptions(int8=int8, max_loss=max_loss),
        overrides=set_ or (),
        say=note,
    )
    show(report, json_=json_, markdown=False, html=None)
