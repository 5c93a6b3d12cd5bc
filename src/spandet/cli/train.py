"""spandet train RECIPE: train a model on annotated documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.terminal import note, show_error
from spandet.errors import TrainingInterrupted
from spandet.formats import read
from spandet.formats.locking import check_no_writer

RecipeFile = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A TOML file: encoder, detector, training.")
]
Train = Annotated[
    list[str],
    typer.Option("--train", metavar="FILE", help="Training data; repeatable for several files."),
]
Dev = Annotated[
    str | None,
    typer.Option(
        "--dev", metavar="FILE", help="Data for choosing the best epoch and the thresholds."
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the run.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="section.key=value", help="Change the recipe; repeatable."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the run in DIR from its checkpoint.")
]
TrainFrom = Annotated[
    str | None, typer.Option("--train-from", metavar="FORMAT", help="Format of the training data.")
]
DevFrom = Annotated[
    str | None, typer.Option("--dev-from", metavar="FORMAT", help="Format of the dev data.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Maximum number of training sentences.")
]


def train_command(
    recipe: RecipeFile,
    train: Train,
    out: Out,
    dev: Dev = None,
    set_: Set = None,
    resume: Resume = False,
    train_from: TrainFrom = None,
    dev_from: DevFrom = None,
    limit: Limit = None,
) -> None:
    """Train a model. Ctrl-C stops with a checkpoint; --resume continues with the same result."""
    check_no_writer(out)
    # Imported here, because torch takes seconds to load.
    from spandet.training import Recipe, load
    from spandet.training import train as train_recognizer

    with stoppable():
        train_recognizer(
            Recipe.load(recipe, set_ or ()),
            load([read(file, train_from) for file in train], limit=limit),
            None if dev is None else read(dev, dev_from),
            out=out,
            resume=resume,
        )


@contextmanager
def stoppable() -> Iterator[None]:
    """Context of a command that trains: a stopped run ends with the exit code of its signal."""
    from spandet.training.step import end_processes

    try:
        yield
    except TrainingInterrupted as interrupted:
        show_error(interrupted)
        raise typer.Exit(128 + interrupted.signal) from None
    except KeyboardInterrupt:
        note("stopped at once; --resume continues from the last checkpoint, if there is one")
        raise typer.Exit(130) from None
    finally:
        end_processes()
