"""spandet benchmark table RECIPES…: train recipes one after another and compare their scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spandet.cli.terminal import console, note
from spandet.cli.train import DevFrom, Limit, Set, Train, TrainFrom
from spandet.errors import UsageError
from spandet.formats import read
from spandet.formats.locking import one_writer
from spandet.formats.records import report_json
from spandet.formats.target import Target

if TYPE_CHECKING:
    from spandet.benchmarking.recipe_table_report import RecipeTableReport

Recipes = Annotated[
    list[Path],
    typer.Argument(
        metavar="RECIPES…", help="Recipes and lists of recipes, such as recipes/ablations/*.toml."
    ),
]
Dev = Annotated[
    str, typer.Option("--dev", metavar="FILE", help="Documents that select epochs and are scored.")
]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder for all runs and the table.")
]
Seeds = Annotated[
    str,
    typer.Option("--seeds", metavar="0,1", help="Train each recipe once with each of these seeds."),
]


def table_command(
    recipes: Recipes,
    train: Train,
    dev: Dev,
    out: Out,
    seeds: Seeds = "0",
    limit: Limit = None,
    set_: Set = None,
    train_from: TrainFrom = None,
    dev_from: DevFrom = None,
) -> None:
    """Train recipes one after another, and write one table of their scores.

    Ctrl-C stops with a checkpoint; the same command resumes. The table is
    written to DIR after each run, as table.md, table.json and table.html.
    """
    numbers = _numbers(seeds)
    files, dev_file = [read(file, train_from) for file in train], read(dev, dev_from)
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.benchmarking.recipe_table import RecipeTable, read_lists
    from spandet.benchmarking.recipe_table_report import RecipeTableReport
    from spandet.training import TrainingInterrupted, load

    lists = read_lists(recipes)
    data = load(files, limit=limit), load(dev_file)
    table = RecipeTable.of(lists, *data, seeds=numbers, overrides=set_ or ())
    report = RecipeTableReport(table)

    runs = table.planned_runs()
    try:
        with one_writer(out):
            for number, run in enumerate(runs, start=1):
                note(f"{number}/{len(runs)}  {run}")
                table.train(run, out)
                _write(report, out)
                if run.seed in run.row.failed:
                    note(f"failed: {run.row.failed[run.seed]}")
    except TrainingInterrupted as interrupted:
        note(f"{str(interrupted).partition(';')[0]}; the same command resumes the table")
        raise typer.Exit(128 + interrupted.signal) from None
    except KeyboardInterrupt:
        note("stopped; the same command resumes the table")
        raise typer.Exit(130) from None
    console().print(report)
    note(f"table: {out / 'table.md'}, table.json, table.html")
    if any(run.row.failed for run in runs):
        raise typer.Exit(1)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--seeds {text}: expected numbers such as 0,1")
    return list(dict.fromkeys(map(int, parts)))


def _write(report: RecipeTableReport, out: Path) -> None:
    texts = {
        "table.md": report.to_markdown(),
        "table.json": report_json(report.to_json()) + "\n",
        "table.html": report.to_html(),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with Target(str(out / name)).text() as stream:
            stream.write(text)
