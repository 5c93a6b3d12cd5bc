"""spandet export MODEL --onnx DIR: write a model that runs on onnxruntime."""

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
    bool, typer.Option("--int8", help="Quantise weights to int8; needs labelled --data.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="Data to compare on; else generated sentences."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Maximum number of documents of the data.")
]
MaxLoss = Annotated[
    float,
    typer.Option("--max-loss", min=0, help="Largest loss of F1 by int8, in points."),
]


OneGraph = Annotated[
    bool,
    typer.Option(
        "--one-graph", help="Write one graph of the whole model, which predicts without torch."
    ),
]


def export_command(
    model: Model,
    onnx: Onnx,
    one_graph: OneGraph = False,
    int8: Int8 = False,
    data: Data = None,
    from_: FromFormat = None,
    limit: Limit = None,
    max_loss: MaxLoss = 0.5,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Export a model to ONNX; it is written only if it predicts the same as torch.

    The folder is used like that of any model: predict, trace, serve, from_pretrained.
    """
    check_no_writer(onnx)
    documents = [] if data is None else list(islice(read(data, from_), limit))
    # torch takes seconds to load: errors in the input files come first.
    from spandet.onnx_export import ExportOptions, export

    report = export(
        model,
        onnx,
        data=documents,
        options=ExportOptions(one_graph=one_graph, int8=int8, max_loss=max_loss),
        overrides=set_ or (),
        notify=note,
    )
    show(report, json_=json_, markdown=False, html=None)
