"""spandet pretrain TEXT…: train an encoder further on raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.terminal import note, show_error
from spandet.formats import read

Texts = Annotated[
    list[str], typer.Argument(metavar="TEXT…", help="Files of documents or of plain text.")
]
From = Annotated[
    str,
    typer.Option(
        "--from", metavar="ENCODER", help="What to begin with: a folder, a hub id, or minilm."
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the new encoder.")]
RecipeFile = Annotated[
    Path | None, typer.Option("--recipe", metavar="FILE", help="Settings as a TOML file.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="key=value", help="Change a setting; repeatable."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in DIR from its checkpoint.")
]
TextFrom = Annotated[
    str | None, typer.Option("--text-from", metavar="FORMAT", help="Format of the texts.")
]


def pretrain_command(
    texts: Texts,
    encoder: From,
    out: Out,
    recipe: RecipeFile = None,
    set_: Set = None,
    resume: Resume = False,
    text_from: TextFrom = None,
) -> None:
    """Train an encoder further on text without labels; recipes name the folder as an encoder.

    Ctrl-C ends it with a checkpoint; --resume goes on as if it had never been stopped.
    """
    sources = [read(text, text_from) for text in texts]
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.pretraining import PretrainingSettings, pretrain
    from spandet.training import TrainingInterrupted
    from spandet.training.step import end_processes

    try:
        pretrain(
            sources,
            encoder,
            out=out,
            settings=PretrainingSettings.load(recipe, set_ or ()),
            resume=resume,
        )
    except TrainingInterrupted as interrupted:
        show_error(interrupted)
        raise typer.Exit(128 + interrupted.signal) from None
    except KeyboardInterrupt:
        note("stopped at once; --resume goes on from the last checkpoint, if there is one")
        raise typer.Exit(130) from None
    finally:
        end_processes()
