"""spandet compare GOLD A B: compare the scores of two systems."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Gold, Html, Json, Markdown, PredictedFrom, Seed
from spandet.cli.terminal import check_output, progress, show
from spandet.evaluation import compare
from spandet.formats import read

First = Annotated[str, typer.Argument(metavar="A", help="Predictions of the first system.")]
Second = Annotated[str, typer.Argument(metavar="B", help="Predictions of the second system.")]


def compare_command(
    gold: Gold,
    first: First,
    second: Second,
    from_: FromFormat = None,
    predicted_from: PredictedFrom = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    seed: Seed = 0,
) -> None:
    """Compare two systems on the same gold annotations by a paired bootstrap over documents."""
    documents = read(gold, from_)
    systems = read(first, predicted_from), read(second, predicted_from)
    check_output([documents, *systems], html)
    comparison = compare(progress(documents, "comparing"), *systems, seed=seed)
    show(comparison, json_=json_, markdown=markdown, html=html)
