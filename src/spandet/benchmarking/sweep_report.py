"""The result of a sweep as tables, plots and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from spandet.benchmarking.sweep import Choice, Measured, SweepResult
from spandet.rendering.svg import category_plot
from spandet.rendering.tables import Table, Tabular, percent
from spandet.training.summary import versions

_OWN = ("P", "R", "F1", "at")
_TUNED = ("tuned\nP", "tuned\nR", "tuned\nF1", "at")
_TIMES = ("ms", "det.\nms")


@dataclass(frozen=True)
class SweepReport(Tabular):
    """The measurements of a sweep."""

    swept: SweepResult

    @property
    def title(self) -> str:
        """The model and the data."""
        return f"{self.swept.model} on {self.swept.data.name}"

    @property
    def introduction(self) -> str:
        """How the figures were measured."""
        swept, data = self.swept, self.swept.data
        return (
            f"Scores: {data.sentences:,} sentences with {data.entities:,} entities. P, R and F1 "
            f"are at the model's own threshold (or the one that is swept), the tuned ones at the "
            f"threshold with the best F1 on these same sentences, which is optimistic. Time per "
            f"sentence: ms from words to entities, det. ms without the encoder; measured on "
            f"{swept.timed:,} of the sentences in batches of {swept.timing.batch}, "
            f"{swept.timing.method()}."
        )

    def tables(self) -> Sequence[Table]:
        """One table per option, or one for all combinations."""
        options = self.swept.options
        if self.swept.grid:
            rows = [choice for choice in self.swept.measured if choice]
            title = " × ".join(option.key for option in options)
            return [self._table(title, rows, self._grid_plots())]
        return [
            self._table(option.key, rows, self._option_plots(option.key, option.values))
            for option in options
            for rows in [[(f"{option.key}={value}",) for value in option.values]]
        ]

    def to_json(self) -> dict[str, Any]:
        """All measurements; scores from 0 to 1, milliseconds per sentence."""
        swept, data = self.swept, self.swept.data
        return {
            "model": swept.model,
            "data": {
                "name": data.name,
                "sentences": data.sentences,
                "entities": data.entities,
                "sha256": data.file_sha256,
            },
            "timing": {
                "sentences": swept.timed,
                "batch": swept.timing.batch,
                "rounds": swept.timing.rounds,
                "threads": swept.timing.threads,
                "clock": swept.timing.clock,
            },
            "rows": [
                {
                    "set": list(choice),
                    "is_model_as_it_is": choice in swept.same_as_base,
                    **_plain(one),
                }
                for choice, one in swept.measured.items()
            ],
            "versions": versions(),
        }

    def _table(self, title: str, rows: Sequence[Choice], plots: tuple[str, ...]) -> Table:
        base, measured = self.swept.same_as_base, self.swept.measured
        named = [
            (_values(choice) + (" *" if choice in base else ""), measured[choice])
            for choice in rows
        ]
        if not base.intersection(rows):
            named.insert(0, ("unchanged", measured[()]))
        return Table(
            formatted=True,
            title=title,
            columns=("", *_OWN, *_TUNED, *_TIMES),
            rows=tuple((name, *_cells(one)) for name, one in named),
            note="* the unchanged model" if base.intersection(rows) else "",
            plots=plots,
        )

    def _option_plots(self, key: str, values: Sequence[str]) -> tuple[str, ...]:
        own = [self.swept.measured[(f"{key}={value}",)] for value in values]
        f1 = {
            "F1, own threshold": [100 * one.own.f1 for one in own],
            "F1, threshold tuned": [100 * one.tuned.f1 for one in own],
        }
        ms = {
            "ms per sentence": [one.ms for one in own],
            "… after the encoder": [one.detector_ms for one in own],
        }
        return (
            category_plot(f1, values, x_label=key, title=f"F1 by {key}"),
            category_plot(ms, values, x_label=key, title=f"Time by {key}", from_zero=True),
        )

    def _grid_plots(self) -> tuple[str, ...]:
        """The values of the first option on the x axis; a line per combination of the others."""
        first, *others = self.swept.options
        f1: dict[str, list[float | None]] = {}
        ms: dict[str, list[float | None]] = {}
        for rest in product(*[[f"{o.key}={value}" for value in o.values] for o in others]):
            own = [self.swept.measured[(f"{first.key}={value}", *rest)] for value in first.values]
            name = ", ".join(_without_section(one) for one in rest)
            f1[name] = [100 * one.tuned.f1 for one in own]
            ms[name] = [one.ms for one in own]
        f1_label = f"{first.key} (F1 with the threshold tuned)"
        return (
            category_plot(f1, first.values, x_label=f1_label, title=f"F1 by {first.key}"),
            category_plot(
                ms,
                first.values,
                x_label=f"{first.key} (ms per sentence)",
                title=f"Time by {first.key}",
                from_zero=True,
            ),
        )


def _without_section(assignment: str) -> str:
    """`steps=2` instead of `detector.steps=2`."""
    key, _, value = assignment.partition("=")
    return f"{key.rpartition('.')[2]}={value}"


def _values(choice: Choice) -> str:
    """The values of the options, in the order of the title."""
    return " × ".join(assignment.partition("=")[2] for assignment in choice)


def _cells(one: Measured) -> tuple[str, ...]:
    own, tuned = one.own, one.tuned
    return (
        *map(percent, (own.precision, own.recall, own.f1)),
        f"{one.threshold:.2f}",
        *map(percent, (tuned.precision, tuned.recall, tuned.f1)),
        f"{tuned.threshold:.2f}",
        f"{one.ms:.2f}",
        f"{one.detector_ms:.2f}",
    )


def _plain(one: Measured) -> dict[str, Any]:
    return {
        "own_threshold": {
            "threshold": one.threshold,
            "precision": one.own.precision,
            "recall": one.own.recall,
            "f1": one.own.f1,
        },
        "tuned_threshold": {
            "threshold": one.tuned.threshold,
            "precision": one.tuned.precision,
            "recall": one.tuned.recall,
            "f1": one.tuned.f1,
        },
        "ms_per_sentence": one.ms,
        "encoder_ms_per_sentence": one.encoder_ms,
        "detector_ms_per_sentence": one.detector_ms,
    }
