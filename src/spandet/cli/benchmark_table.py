"""spandet benchmark table RECIPES…: train recipes one after another and compare them."""

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
    from spandet.benchmarking.table_sheet import TableSheet

Recipes = Annotated[
    list[Path],
    typer.Argument(metavar="RECIPES…", help="Recipes, and lists such as recipes/ablations/*.toml."),
]
Dev = Annotated[
    str, typer.Option("--dev", metavar="FILE", help="What chooses epochs and is scored.")
]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder of all runs and of the table.")
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="0,1", help="Each recipe once with each.")]


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
    """Train recipes one after another, and write one table of what they give.

    Ctrl-C ends it; the same command goes on where it stopped. The table is in
    DIR as table.md, table.json and table.html, after each run anew.
    """
    numbers = _numbers(seeds)
    corpora = read(train, train_from), read(dev, dev_from)
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.benchmarking.recipe_lists import read_lists
    from spandet.benchmarking.table import TableOfRuns
    from spandet.benchmarking.table_sheet import TableSheet
    from spandet.training import TrainingInterrupted, load

    lists = read_lists(recipes)
    data = load(corpora[0], limit=limit), load(corpora[1])
    table = TableOfRuns.of(lists, *data, seeds=numbers, overrides=set_ or ())
    sheet = TableSheet(table)

    jobs = table.jobs()
    try:
        with one_writer(out):
            for number, job in enumerate(jobs, start=1):
                note(f"{number}/{len(jobs)}  {job}")
                table.run(job, out)
                _write(sheet, out)
                if job.seed in job.row.failed:
                    note(f"failed: {job.row.failed[job.seed]}")
    except TrainingInterrupted as interrupted:
        note(f"{str(interrupted).partition(';')[0]}; the same command goes on with the table")
        raise typer.Exit(128 + interrupted.signal) from None
    except KeyboardInterrupt:
        note("stopped at once; the same command goes on with the table")
        raise typer.Exit(130) from None
    console().print(sheet)
    note(f"table: {out / 'table.md'}, table.json, table.html")
    if any(job.row.failed for job in jobs):
        raise typer.Exit(1)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--seeds {text}: expected numbers such as 0,1")
    return list(dict.fromkeys(map(int, parts)))


def _write(sheet: TableSheet, out: Path) -> None:
    plain = report_json(sheet.to_json()) + "\n"
    texts = {"table.md": sheet.to_markdown(), "table.json": plain, "table.html": sheet.to_html()}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with Target(str(out / name)).text() as stream:
            stream.write(text)
