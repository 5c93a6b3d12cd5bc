"""report.html of a training run: curves, scores, examples, data and settings on one page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from spandet.rendering import svg
from spandet.rendering.html import html_page
from spandet.rendering.tables import TABLE_STYLE, Cell, Table, duration, html_table
from spandet.text import Document
from spandet.training.checkpoint import DevScore
from spandet.training.log import LOG, read_log
from spandet.training.summary import Summary, versions
from spandet.viewing import comparison_to_html

REPORT = "report.html"

_EXAMPLES = 12
_STYLE = """
iframe { width: 100%; height: 42rem; border: 1px solid var(--line); border-radius: 6px; }
pre { background: var(--panel); padding: 1rem; border-radius: 6px; overflow-x: auto; }
"""


def report_page(summary: Summary, folder: Path) -> str:
    """The HTML page; the losses of single steps are read from the run's log."""
    parts = [
        f'<p class="soft">{escape(headline(summary))}</p>',
        *_preset(summary),
        *(f"<p>⚠ {escape(warning)}</p>" for warning in summary.warnings),
        _section("Loss", _loss_plot(summary, folder)),
        _section("F1 on dev, each epoch at its best threshold", _dev_plot(summary)),
        _table(_epochs(summary)),
        _table(summary.score_table()),
        _section("Examples from dev: gold and predicted", _examples(summary)),
        _table(_decoding(summary)),
        _table(summary.data_table()),
        _section("Recipe", f"<pre>{escape(summary.recipe.to_toml())}</pre>"),
        _table(
            Table(title="Versions", columns=("package", "version"), rows=tuple(versions().items()))
        ),
    ]
    style = svg.STYLE + TABLE_STYLE + _STYLE
    return html_page(title="Training report", body="\n".join(parts), style=style)


def headline(summary: Summary) -> str:
    """The run in one line."""
    state = summary.state
    facts = [
        summary.scores.title if summary.scores else "no dev data",
        f"epoch {state.best} of {state.epoch}",
        f"{state.step:,} steps in {duration(state.seconds)}",
        f"seed {summary.recipe.training.seed}",
    ]
    return " · ".join(facts)


def _preset(summary: Summary) -> list[str]:
    recipe = summary.recipe
    return [f"<p>{escape(recipe.preset_line())}</p>"] if recipe.preset else []


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{body}</section>" if body else ""


def _table(table: Table | None) -> str:
    return "" if table is None else _section(table.title, html_table(table))


def _loss_plot(summary: Summary, folder: Path) -> str:
    wanted = summary.state.history[-1].losses.keys() if summary.state.history else None
    logged = [line for line in _logged_steps(folder) if wanted in (None, line["losses"].keys())]
    points: list[tuple[float, dict[str, float]]] = (
        [(line["step"], line["losses"]) for line in logged]
        if len(logged) > 1
        else [(record.step, record.losses) for record in summary.state.history]
    )
    names = list(points[0][1]) if points else []
    series: dict[str, Sequence[svg.Point]] = {
        name: [(step, losses[name]) for step, losses in points] for name in names
    }
    if len(names) > 1:
        series = {"sum": [(step, sum(losses.values())) for step, losses in points], **series}
    return svg.line_plot(series, x_label="step", title="Loss by step")


def _logged_steps(folder: Path) -> list[dict[str, Any]]:
    steps = (entry for entry in read_log(folder / LOG) if entry["kind"] == "step")
    return [entry for entry in steps if isinstance(entry.get("losses"), dict)]


def _dev_plot(summary: Summary) -> str:
    scored = [(record.epoch, record.dev) for record in summary.state.history if record.dev]
    series = {
        "F1": [(float(epoch), 100 * dev.f1) for epoch, dev in scored],
        "precision": [(float(epoch), 100 * dev.precision) for epoch, dev in scored],
        "recall": [(float(epoch), 100 * dev.recall) for epoch, dev in scored],
        "F1 untuned": [(float(epoch), 100 * dev.f1_untuned) for epoch, dev in scored],
    }
    title = "Precision, recall and F1 on dev by epoch"
    return svg.line_plot(series, x_label="epoch", title=title)


def _epochs(summary: Summary) -> Table:
    dev_columns = ("P", "R", "F1", "threshold", "F1 untuned")
    rows: list[tuple[Cell, ...]] = []
    for record in summary.state.history:
        scores = _dev_cells(record.dev) if record.dev else [None] * len(dev_columns)
        best = " (best)" if record.epoch == summary.state.best else ""
        rows.append(
            (
                f"{record.epoch}{best}",
                record.step,
                f"{sum(record.losses.values()):.4f}",
                *scores,
                f"{record.sentences_per_second:.1f}",
                duration(record.seconds),
            )
        )
    columns = ("epoch", "step", "loss", *dev_columns, "sentences/s", "time")
    return Table(title="Epochs", columns=columns, rows=tuple(rows), formatted=True)


def _dev_cells(dev: DevScore) -> list[Cell]:
    return [dev.precision, dev.recall, dev.f1, f"{dev.threshold:.3f}", dev.f1_untuned]


def _examples(summary: Summary) -> str:
    if summary.dev is None:
        return ""
    pairs = [
        (gold, found)
        for gold, found in zip(summary.dev.documents, summary.predicted, strict=True)
        if gold.entities or found.entities
    ]
    if not pairs:
        return ""
    shown = comparison_to_html(_spread(pairs), title="Gold and predicted")
    # In a frame, because that page has its own style and script.
    return f'<iframe title="Gold and predicted" srcdoc="{escape(shown)}"></iframe>'


def _spread(pairs: Sequence[tuple[Document, Document]]) -> list[tuple[Document, Document]]:
    """A few pairs, evenly spaced."""
    count = min(_EXAMPLES, len(pairs))
    return [pairs[i * len(pairs) // count] for i in range(count)]


def _decoding(summary: Summary) -> Table:
    return Table(
        title="Decoding" + (", tuned on dev" if summary.tuned else ""),
        columns=("setting", "value"),
        rows=tuple((key, str(value)) for key, value in summary.decoding.items()),
        formatted=True,
    )
