"""spandet benchmark: `speed` and `train` (what a detector costs), `sweep`, `stages`, `table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.benchmark_table import table_command
from spandet.cli.options import FromFormat, Html, Json, Markdown, Model, Set
from spandet.cli.terminal import check_output, progress, show
from spandet.cli.train import RecipeFile
from spandet.cli.train import Set as SetRecipe
from spandet.formats import read

Data = Annotated[str, typer.Argument(metavar="DATA", help="Annotated documents, in any format.")]
Timed = Annotated[
    int, typer.Option("--timed", min=1, help="Approximate number of sentences to time.")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Sentences per timed batch.")]
Rounds = Annotated[
    int, typer.Option("--rounds", min=1, help="Time each batch this often; the best time counts.")
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Number of CPU threads.")]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths",
        metavar="16,64,256",
        help="Also time the detector alone on synthetic sentences with these numbers of words.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Use only the first sentences of DATA.")
]
Modules = Annotated[
    bool, typer.Option("--parts", help="Also show the share of each module in the forward pass.")
]
Sweep = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="section.key=v1,v2,…", help="A setting and its values; repeatable."
    ),
]
Grid = Annotated[
    bool, typer.Option("--grid", help="Measure all combinations instead of each option alone.")
]


def speed_command(
    model: Model,
    data: Data,
    set_: Set = None,
    from_: FromFormat = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    timed: Timed = 200,
    batch: Batch = 8,
    rounds: Rounds = 4,
    threads: Threads = 1,
    lengths: Lengths = None,
) -> None:
    """Time the bare encoder and the whole prediction on the same batches."""
    corpus = read(data, from_)
    check_output([corpus], html)
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.benchmarking import cost, profiling
    from spandet.benchmarking.cost_report import CostReport
    from spandet.benchmarking.measuring import Timing, torch_threads
    from spandet.inference.recognizer import Recognizer
    from spandet.rendering.progress import ProgressDisplay
    from spandet.training.data import load

    timing = Timing(sentences=timed, batch=batch, rounds=rounds, threads=threads)
    words = profiling.parse_lengths(lengths) if lengths else []
    split, recognizer = load(corpus), Recognizer.from_pretrained(model, set_ or ())
    documents = split.documents
    with torch_threads(threads), ProgressDisplay() as progress:
        workload = cost.PredictionWorkload(recognizer, documents)
        report = CostReport(
            what="prediction",
            of=Path(model).resolve().name,
            data=split,
            timing=timing,
            batch=f"{batch} sentences",
            encoder=cost.bare_encoder_name(recognizer.encoder),
            costs=cost.costs_by_length(workload, timing, progress),
            predict=cost.predict_speed(recognizer, documents, timing),
            lengths=list(profiling.prediction_by_length(recognizer, documents, words, timing)),
        )
    show(report, json_=json_, markdown=markdown, html=html)


def train_speed_command(
    recipe: RecipeFile,
    data: Data,
    set_: SetRecipe = None,
    from_: FromFormat = None,
    limit: Limit = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    timed: Timed = 64,
    rounds: Rounds = 4,
    threads: Threads = 1,
    lengths: Lengths = None,
    parts: Modules = False,
) -> None:
    """Time a training step of the bare encoder and of the whole model on the same batches.

    The weights are new; the batches are those of the recipe.
    """
    corpus = read(data, from_)
    check_output([corpus], html)
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.benchmarking import cost, profiling
    from spandet.benchmarking.cost_report import CostReport
    from spandet.benchmarking.measuring import Timing, torch_threads
    from spandet.rendering.progress import ProgressDisplay
    from spandet.training import Recipe, load
    from spandet.training.data import learnable

    timing = Timing(sentences=timed, rounds=rounds, threads=threads)
    words = profiling.parse_lengths(lengths) if lengths else []
    loaded = Recipe.load(recipe, set_ or ())
    training = loaded.training
    split = learnable(load(corpus, limit=limit), fragments=loaded.model.fragments)
    documents = split.documents
    with torch_threads(threads), ProgressDisplay() as progress:
        workload = cost.TrainingWorkload(loaded, documents)
        recognizer = workload.recognizer
        report = CostReport(
            what="training",
            of="/".join(recipe.with_suffix("").parts[-2:]),
            data=split,
            timing=timing,
            batch=f"at most {training.batch_sentences} sentences and "
            f"{training.batch_pieces:,} pieces",
            encoder=cost.bare_encoder_name(recognizer.encoder),
            costs=cost.costs_by_length(workload, timing, progress),
            profile=profiling.profile_training(workload, timed) if parts else None,
            lengths=list(profiling.training_by_length(recognizer, documents, words, timing)),
        )
    show(report, json_=json_, markdown=markdown, html=html)


def sweep_command(
    model: Model,
    data: Data,
    set_: Sweep,
    grid: Grid = False,
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
    """Score and time a trained model with every value of some settings.

    There are two scores: at the model's own threshold, and at the threshold
    with the best F1 on DATA. All values take turns on each batch, so that
    other load on the machine affects them equally.
    """
    corpus = read(data, from_)
    check_output([corpus], html)
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.benchmarking.measuring import Timing
    from spandet.benchmarking.sweep import Option, sweep
    from spandet.benchmarking.sweep_report import SweepReport
    from spandet.benchmarking.variants import SweptModel
    from spandet.rendering.progress import ProgressDisplay
    from spandet.training.data import load

    options = [Option.parse(text) for text in set_]
    timing = Timing(sentences=timed, batch=batch, rounds=rounds, threads=threads)
    split, loaded = load(corpus, limit=limit), SweptModel(model)
    swept = sweep(loaded, split, options, grid=grid, timing=timing, progress=ProgressDisplay())
    show(SweepReport(swept), json_=json_, markdown=markdown, html=html)


def stages_command(
    model: Model,
    data: Data,
    set_: Set = None,
    from_: FromFormat = None,
    limit: Limit = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
) -> None:
    """Count the candidates at each stage, and how far the boundaries of entities move.

    The distance is that between an entity and its candidate in the first
    stage, in words.
    """
    corpus = read(data, from_)
    check_output([corpus], html)
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.benchmarking.stages import StagesReport, count_stages
    from spandet.inference.recognizer import Recognizer
    from spandet.training.data import load

    split, recognizer = load(corpus, limit=limit), Recognizer.from_pretrained(model, set_ or ())
    counts = count_stages(recognizer, progress(split.documents, "counting"))
    report = StagesReport(model=Path(model).resolve().name, data=split, counts=counts)
    show(report, json_=json_, markdown=markdown, html=html)


benchmark_app = typer.Typer(
    help="Measure what a detector costs, what settings are worth, and which recipe scores best.",
    no_args_is_help=True,
)
benchmark_app.command("sweep")(sweep_command)
benchmark_app.command("speed")(speed_command)
benchmark_app.command("train")(train_speed_command)
benchmark_app.command("stages")(stages_command)
benchmark_app.command("table")(table_command)
