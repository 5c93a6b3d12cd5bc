"""spandet models [NAME]: list the models, or show the card of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from spandet.cli.options import Json
from spandet.cli.terminal import console, note
from spandet.errors import UsageError
from spandet.inference.model_names import CARD, Listed, find_model, listed, local_folder, models

if TYPE_CHECKING:
    from pathlib import Path

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Name or folder of the model to show.")
]


def models_command(name: Name = None, json_: Json = False) -> None:
    """List bundled and local models, or show the card of one.

    Local models are folders in $SPANDET_MODELS or in your data folder.
    """
    if name is not None:
        _show_one(find_model(name), json_=json_)
        return
    found = list(models())
    if json_:
        typer.echo(json.dumps([model.to_json() for model in found], ensure_ascii=False, indent=2))
    elif found:
        _show_table(found)
    if not found:
        note(f"no models: put the folder of a trained model into {local_folder()}")


def _show_one(folder: Path, *, json_: bool) -> None:
    if json_:
        typer.echo(json.dumps(listed(folder).to_json(), ensure_ascii=False, indent=2))
        return
    try:
        typer.echo((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {folder} has no card ({error})") from None


def _show_table(found: list[Listed]) -> None:
    from rich.table import Table

    table = Table("name", "origin", "detector", "labels", box=None, pad_edge=False)
    table.add_column("F1")
    table.add_column("size", justify="right")
    for model in found:
        f1 = "\n".join(f"{100 * one.f1:.2f} ({one.data})" for one in model.measured)
        size = f"{model.bytes / 1e6:,.1f} MB"
        labels = ", ".join(model.labels)
        detector = f"{model.detector} ({model.preset})" if model.preset else model.detector
        table.add_row(model.name, model.origin, detector, labels, f1, size)
    console().print(table)
