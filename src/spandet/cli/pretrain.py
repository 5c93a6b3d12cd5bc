"""spandet pretrain TEXT…: train an encoder further on raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.train import Resume, stoppable
from spandet.formats import read

Texts = Annotated[
    list[str], typer.Argument(metavar="TEXT…", help="Files of documents or of plain text.")
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="ENCODER",
        help="The encoder to start from: a folder, a hub id, or minilm.",
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
    """Train an encoder further on text without labels; recipes can name the resulting folder.

    Ctrl-C stops with a checkpoint; --resume continues with the same result.
    """
    sources = [read(text, text_from) for text in texts]
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.pretraining import PretrainingSettings, pretrain

    with stoppable():
        pretrain(
            sources,
            encoder,
            out=out,
            settings=PretrainingSettings.load(recipe, set_ or ()),
            resume=resume,
        )
