"""spandet pack MODEL OUT: write a smaller model folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spandet.cli.options import Json, Model, Set
from spandet.cli.terminal import note, show
from spandet.errors import UsageError
from spandet.formats import read
from spandet.formats.locking import check_no_writer

if TYPE_CHECKING:
    from spandet.text import Document

Out = Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; new or empty.")]
Data = Annotated[
    list[str],
    typer.Option("--data", metavar="FILE", help="Labelled data to measure F1 on; repeatable."),
]
Weights = Annotated[
    Literal["float32", "half", "int8"],
    typer.Option("--weights", help="How weights are stored; in memory they are float32."),
]
Prune = Annotated[
    list[str] | None,
    typer.Option(
        "--prune", metavar="CORPUS", help="Keep only the pieces of this text; repeatable."
    ),
]
Pieces = Annotated[
    int,
    typer.Option(
        "--pieces", min=0, help="Size of the pruned vocabulary; frequent pieces fill it up."
    ),
]
MaxLoss = Annotated[float, typer.Option("--max-loss", min=0, help="Largest loss of F1, in points.")]
About = Annotated[
    Path | None,
    typer.Option("--about", metavar="FILE", help="Markdown for the start of the model card."),
]


def pack_command(
    model: Model,
    out: Out,
    data: Data,
    weights: Weights = "int8",
    prune: Prune = None,
    pieces: Pieces = 0,
    max_loss: MaxLoss = 0.5,
    about: About = None,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Write a smaller model: quantised weights, pruned vocabulary; only if F1 hardly falls.

    The folder is used like that of any model. Speed and memory are those of the parent.
    """
    if pieces and not prune:
        raise UsageError("--pieces is for a pruned vocabulary: give a text with --prune")
    check_no_writer(out)
    named = dict(map(_labelled, data))
    if len(named) < len(data):
        raise UsageError(f"--data has files of one name, expected different ones: {sorted(named)}")
    opening = None if about is None else _read(about)
    # torch takes seconds to load: errors in the input files come first.
    from spandet.packing import PackOptions, pack

    report = pack(
        model,
        out,
        data=named,
        corpus=_texts(prune or ()),
        options=PackOptions(weights=weights, pieces=pieces, max_loss=max_loss, about=opening),
        overrides=set_ or (),
        notify=note,
    )
    show(report, json_=json_, markdown=False, html=None)


def _labelled(path: str) -> tuple[str, list[Document]]:
    """The file's name, with whether its words are given, and its documents."""
    documents = list(read(path))
    is_raw = all(document.own_sentences is None for document in documents)
    return f"{Path(path).name} ({'raw text' if is_raw else 'its own words'})", documents


def _texts(paths: Iterable[str]) -> Iterator[Document]:
    for path in paths:
        yield from read(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path} ({error})") from None
