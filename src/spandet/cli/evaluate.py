"""spandet evaluate GOLD PREDICTED: score predictions."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Gold, Html, Json, Markdown, PredictedFrom, Seed
from spandet.cli.terminal import check_output, progress, show
from spandet.evaluation import evaluate
from spandet.formats import read

Predicted = Annotated[str, typer.Argument(help="Predictions: a file or a folder.")]


def evaluate_command(
    gold: Gold,
    predicted: Predicted,
    from_: FromFormat = None,
    predicted_from: PredictedFrom = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    seed: Seed = 0,
) -> None:
    """Score predictions by exact spans and labels: overall, by label, nesting and length."""
    corpora = read(gold, from_), read(predicted, predicted_from)
    check_output(corpora, html)
    report = evaluate(progress(corpora[0], "scoring"), corpora[1], seed=seed)
    show(report, json_=json_, markdown=markdown, html=html)
