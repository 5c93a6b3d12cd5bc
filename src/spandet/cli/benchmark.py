"""spandet benchmark: the commands that measure."""

from __future__ import annotations

import typer

from spandet.cli.benchmark_speed import speed_command
from spandet.cli.benchmark_sweep import sweep_command
from spandet.cli.benchmark_table import table_command
from spandet.cli.benchmark_train import train_speed_command

benchmark_app = typer.Typer(
    help="Measure: what settings are worth, what a detector costs, which recipe is best.",
    no_args_is_help=True,
)
benchmark_app.command("sweep")(sweep_command)
benchmark_app.command("speed")(speed_command)
benchmark_app.command("train")(train_speed_command)
benchmark_app.command("table")(table_command)
