"""spandet evaluate GOLD PREDICTED: how good are these predictions?"""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Gold, Html, Json, Markdown, PredictedFrom, Seed
from spandet.cli.terminal import progress, protect, show
from spandet.evaluation import evaluate
from spandet.formats import read

Predicted = Annotated[str, typer.Argument(help="What was found, in any format.")]


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
    """Score predictions against gold: exact spans and labels, by label, nesting and length."""
    corpora = read(gold, from_), read(predicted, predicted_from)
    protect(corpora, html)
    report = evaluate(progress(corpora[0], "scoring"), corpora[1], seed=seed)
    show(report, json_=json_, markdown=markdown, html=html)
