"""The command line: one module per command. A user's mistake prints one line, not a traceback."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import spandet
from spandet.cli.benchmark import benchmark_app
from spandet.cli.compare import compare_command
from spandet.cli.convert import convert_command
from spandet.cli.ensemble import ensemble_command
from spandet.cli.evaluate import evaluate_command
from spandet.cli.export import export_command
from spandet.cli.formats import formats_command
from spandet.cli.generate import generate_command
from spandet.cli.models import models_command
from spandet.cli.pack import pack_command
from spandet.cli.predict import predict_command
from spandet.cli.pretrain import pretrain_command
from spandet.cli.select import select_command
from spandet.cli.serve import serve_command
from spandet.cli.stats import stats_command
from spandet.cli.terminal import show_error
from spandet.cli.trace import trace_command
from spandet.cli.train import train_command
from spandet.cli.view import view_command
from spandet.errors import SpandetError, UsageError

app = typer.Typer(
    name="spandet",
    help="Named entities, detected like objects: nested, overlapping, discontinuous ones included.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spandet {spandet.__version__}")
        raise typer.Exit


@app.callback()
def _options_of_all_commands(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command("convert")(convert_command)
app.command("stats")(stats_command)
app.command("view")(view_command)
app.command("evaluate")(evaluate_command)
app.command("compare")(compare_command)
app.command("select")(select_command)
app.command("pretrain")(pretrain_command)
app.command("train")(train_command)
app.command("ensemble")(ensemble_command)
app.command("export")(export_command)
app.command("pack")(pack_command)
app.command("predict")(predict_command)
app.command("models")(models_command)
app.command("trace")(trace_command)
app.command("serve")(serve_command)
app.command("generate")(generate_command)
app.command("formats")(formats_command)
app.add_typer(benchmark_app, name="benchmark")


CLOSED_PIPE = 141
"""Exit code of a process whose output pipe was closed: 128 + SIGPIPE."""


def main() -> None:
    """Run the command line.

    Exits with 1 for bad data, 2 for a bad argument, and 141, without a message, if the reader of
    its output has closed the pipe (`spandet view FILE | head`).
    """
    try:
        app()
    except SpandetError as error:
        show_error(error)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except SystemExit as end:
        # typer and rich exit with 1 when a pipe is closed, which would mean bad data.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Python flushes the rest of the buffer on exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(CLOSED_PIPE)
