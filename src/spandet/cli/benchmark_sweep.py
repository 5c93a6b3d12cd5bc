"""spandet benchmark sweep MODEL DATA: what the settings of a model are worth."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.benchmark_options import Batch, Data, Rounds, Threads, Timed
from spandet.cli.options import FromFormat, Html, Json, Markdown, Model
from spandet.cli.terminal import protect, show
from spandet.formats import read

Sweep = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="section.key=v1,v2,…", help="A setting and its values; repeatable."
    ),
]
AllTogether = Annotated[
    bool, typer.Option("--grid", help="All combinations of the options, not each by itself.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="The first so many sentences only.")
]


def sweep_command(
    model: Model,
    data: Data,
    set_: Sweep,
    grid: AllTogether = False,
    from_: FromFormat = None,
    limit: Limit = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    timed: Timed = 200,
    batch: Batch = 8,
    rounds: Rounds = 4,
    threads: Threads = 1,
) -> None:
    """Score and time a trained model under every value of some settings.

    Scores come twice: at the model's own threshold, and at the one with the
    best F1 on DATA. All values take turns on each batch, so that whatever else
    the machine does slows them alike.
    """
    corpus = read(data, from_)
    protect([corpus], html)
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.benchmarking.clock import Timing
    from spandet.benchmarking.sweep import sweep
    from spandet.benchmarking.sweep_sheet import SweepSheet
    from spandet.benchmarking.variants import Model as TrainedModel
    from spandet.benchmarking.variants import Option
    from spandet.training.data import load
    from spandet.training.progress import Screen

    options = [Option.parse(text) for text in set_]
    timing = Timing(sentences=timed, batch=batch, rounds=rounds, threads=threads)
    split, loaded = load(corpus, limit=limit), TrainedModel(model)
    swept = sweep(loaded, split, options, grid=grid, timing=timing, screen=Screen())
    show(SweepSheet(swept), json_=json_, markdown=markdown, html=html)
