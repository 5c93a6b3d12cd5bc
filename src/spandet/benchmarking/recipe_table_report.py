"""A table of recipes as tables, plots and JSON: mean and standard deviation over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spandet.benchmarking.recipe_table import RecipeList, RecipeTable, Row, RunResult
from spandet.rendering.svg import dot_plot
from spandet.rendering.tables import Table, Tabular, duration
from spandet.training.data import Split
from spandet.training.summary import versions

_COLUMNS = ("", "F1", "Δ", "P", "R", "time", "train/s", "pred/s", "MB", "runs")


@dataclass(frozen=True)
class RecipeTableReport(Tabular):
    """The results of the runs so far."""

    table: RecipeTable

    @property
    def title(self) -> str:
        """The titles of the lists."""
        return "; ".join(own.about for own in self.table.lists)

    @property
    def introduction(self) -> str:
        """How the figures were measured."""
        table, train, dev = self.table, self.table.train_data, self.table.dev_data
        seeds = ", ".join(map(str, table.seeds))
        changed = f" All runs with {', '.join(table.overrides)}." if table.overrides else ""
        return (
            f"Trained on {train.name} ({train.sentences:,} sentences), scored on {dev.name} "
            f"({dev.sentences:,} sentences), which also selected epoch and thresholds. Means over "
            f"the seeds {seeds}, for F1 with standard deviation; Δ: difference in F1 to the first "
            f"row. Time is wall-clock time, evaluation on dev after each epoch included; train/s "
            f"and pred/s are sentences per second (prediction: CPU time, one thread); MB: peak "
            f"memory of the process.{changed}"
        )

    def tables(self) -> Sequence[Table]:
        """For each list its scores and the settings of its rows."""
        return [
            table for own in self.table.lists for table in (self._scores(own), self._settings(own))
        ]

    def to_json(self) -> dict[str, Any]:
        """The results of all runs."""
        table = self.table
        return {
            "train": _plain_split(table.train_data),
            "dev": _plain_split(table.dev_data),
            "seeds": list(table.seeds),
            "set": list(table.overrides),
            "lists": [
                {
                    "name": own.name,
                    "about": own.about,
                    "rows": [_plain_row(row) for row in table.rows[own.name]],
                }
                for own in table.lists
            ],
            "versions": versions(),
        }

    def _scores(self, own: RecipeList) -> Table:
        rows = self.table.rows[own.name]
        first = mean(rows[0].values(_f1))
        plots = [("F1 on dev", _percent_f1), ("training, minutes", lambda run: run.seconds / 60)]
        return Table(
            formatted=True,
            title=own.about,
            columns=_COLUMNS,
            rows=tuple(self._cells(row, first) for row in rows),
            note="; ".join(
                f"{row.entry.name}, seed {seed}: {why}"
                for row in rows
                for seed, why in row.failed.items()
            ),
            plots=tuple(
                dot_plot(
                    {
                        row.entry.name: (mean(row.values(of)), deviation(row.values(of)))
                        for row in rows
                    },
                    x_label=label,
                    title=f"{label} by row",
                    from_zero=of is not _percent_f1,
                )
                for label, of in plots
            ),
        )

    def _cells(self, row: Row, first: float | None) -> tuple[str, ...]:
        f1 = mean(row.values(_f1))
        change = "" if f1 is None or first is None else f"{100 * (f1 - first):+.2f}"
        seconds = mean(row.values(lambda run: run.seconds))
        return (
            row.entry.name,
            _with_deviation(row.values(_percent_f1)),
            change,
            _shown(row.values(lambda run: 100 * run.precision), 2),
            _shown(row.values(lambda run: 100 * run.recall), 2),
            "" if seconds is None else duration(seconds),
            _shown(row.values(lambda run: run.sentences_per_second), 1),
            _shown(row.values(lambda run: run.measured.predict_sentences_per_second), 1),
            _shown(row.values(_megabytes), 0),
            f"{len(row.runs)}/{len(self.table.seeds)}",
        )

    def _settings(self, own: RecipeList) -> Table:
        rows = self.table.rows[own.name]
        return Table(
            title=f"Settings of the rows of {own.name}",
            columns=("", "settings"),
            rows=tuple((row.entry.name, ", ".join(row.entry.set)) for row in rows),
        )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None without values."""
    return statistics.fmean(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation; None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def _shown(values: Sequence[float], digits: int) -> str:
    value = mean(values)
    return "" if value is None else f"{value:,.{digits}f}"


def _with_deviation(values: Sequence[float]) -> str:
    spread = deviation(values)
    return _shown(values, 2) + ("" if spread is None else f"±{spread:.2f}")


def _f1(run: RunResult) -> float:
    return run.f1


def _percent_f1(run: RunResult) -> float:
    return 100 * run.f1


def _megabytes(run: RunResult) -> float | None:
    size = run.measured.peak_memory_bytes
    return None if size is None else size / 1e6


def _plain_split(split: Split) -> dict[str, Any]:
    return {"name": split.name, "sentences": split.sentences, "sha256": split.file_sha256}


def _plain_row(row: Row) -> dict[str, Any]:
    of: dict[str, Callable[[RunResult], float | None]] = {
        "f1": _f1,
        "precision": lambda run: run.precision,
        "recall": lambda run: run.recall,
        "seconds": lambda run: run.seconds,
        "sentences_per_second": lambda run: run.sentences_per_second,
        "predict_sentences_per_second": lambda run: run.measured.predict_sentences_per_second,
        "peak_memory_bytes": lambda run: run.measured.peak_memory_bytes,
    }
    return {
        "name": row.entry.name,
        "set": list(row.entry.set),
        "mean": {name: mean(row.values(get)) for name, get in of.items()},
        "deviation": {name: deviation(row.values(get)) for name, get in of.items()},
        "runs": [{**asdict(run), "measured": run.measured.model_dump()} for run in row.runs],
        "failed": {str(seed): why for seed, why in row.failed.items()},
    }
