"""spandet benchmark train RECIPE DATA: what a detector adds to its encoder in training."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.benchmark_options import Data, Lengths, Rounds, Threads, Timed
from spandet.cli.options import FromFormat, Html, Json, Markdown
from spandet.cli.terminal import protect, show
from spandet.cli.train import RecipeFile, Set
from spandet.formats import read

Parts = Annotated[
    bool, typer.Option("--parts", help="Also show which parts the forward pass spends time in.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="The first so many sentences only.")
]


def train_speed_command(
    recipe: RecipeFile,
    data: Data,
    set_: Set = None,
    from_: FromFormat = None,
    limit: Limit = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    timed: Timed = 64,
    rounds: Rounds = 4,
    threads: Threads = 1,
    lengths: Lengths = None,
    parts: Parts = False,
) -> None:
    """Time a training step of the bare encoder and one of everything, on the same batches.

    Weights are fresh, batches are the recipe's.
    """
    corpus = read(data, from_)
    protect([corpus], html)
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.benchmarking import clock
    from spandet.benchmarking.cost import costs_by_length
    from spandet.benchmarking.cost_sheet import CostSheet
    from spandet.benchmarking.inference import bare_name
    from spandet.benchmarking.lengths import parse_lengths, training_by_length
    from spandet.benchmarking.parts import profile_of
    from spandet.benchmarking.training_step import TrainingStep
    from spandet.training import Recipe, load
    from spandet.training.data import learnable
    from spandet.training.progress import Screen

    timing = clock.Timing(sentences=timed, rounds=rounds, threads=threads)
    words = parse_lengths(lengths) if lengths else []
    loaded = Recipe.load(recipe, set_ or ())
    split = learnable(load(corpus, limit=limit), fragments=loaded.model.fragments)
    with clock.threads(threads), Screen() as screen:
        step = TrainingStep(loaded, split.documents)
        costs = costs_by_length(step, timing, screen)
        seen = profile_of(step, timed) if parts else None
        alone = list(training_by_length(step.recognizer, split.documents, words, timing))
    training = loaded.training
    sheet = CostSheet(
        what="training",
        of="/".join(recipe.with_suffix("").parts[-2:]),
        data=split,
        timing=timing,
        batch=f"{training.batch_sentences} sentences and {training.batch_pieces:,} pieces at most",
        encoder=bare_name(step.recognizer.encoder),
        costs=costs,
        lengths=alone,
        profile=seen,
    )
    show(sheet, json_=json_, markdown=markdown, html=html)
