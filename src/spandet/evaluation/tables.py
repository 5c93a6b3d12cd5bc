"""Results as tables, which a terminal, a Markdown file and a page show each in its own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from re import compile as compile_pattern
from typing import TYPE_CHECKING, Literal, TypeAlias

from spandet.evaluation.scores import Score
from spandet.rendering.html import page

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell: TypeAlias = str | int | float | None
"""Words, a count, a share (0 to 1, shown in per cent), or nothing."""

_UNFIT = compile_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # terminal commands, half characters

SCORE_COLUMNS = ("P", "R", "F1", "gold", "predicted")

_STYLE = """
table { font-variant-numeric: tabular-nums; margin: .4rem 0; }
section { overflow-x: auto; }
th { color: var(--soft); font-weight: 500; }
th.words, td.words { text-align: start; overflow-wrap: break-word; max-width: 28rem; }
svg.bar { vertical-align: middle; }
svg.bar .track { fill: var(--line); } svg.bar .value { fill: #3e63dd; }
@media (prefers-color-scheme: dark) { svg.bar .value { fill: #849dff; } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table; the first column names its rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bar: int | None = None
    """The column whose shares are also drawn as bars."""
    note: str = ""
    only: Literal["page", "text"] | None = None
    """Where it is shown, if not everywhere: on the page, or in the terminal and Markdown."""


class Tabular(ABC):
    """A result that can be looked at. `rich.print` shows it in colour, `print` as Markdown."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the result is, in a few words."""

    @abstractmethod
    def tables(self) -> Iterable[Table]:
        """Its tables from the most to the least important."""

    def to_markdown(self) -> str:
        """A heading and tables; percentages."""
        parts = [f"## {_markdown_text(self.title)}"]
        parts.extend(_markdown(table) for table in self.tables() if table.only != "page")
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """One self-contained page."""
        body = "\n".join(_html(table) for table in self.tables() if table.only != "text")
        return page(title=self.title, body=body, style=_STYLE)

    def __str__(self) -> str:
        return self.to_markdown()

    def __rich__(self) -> RenderableType:
        # Rich takes a while to load, and a JSON report does not need it.
        from spandet.evaluation.terminal import renderable  # noqa: PLC0415

        return renderable(self.title, [table for table in self.tables() if table.only != "page"])


def score_table(
    title: str,
    rows: Iterable[tuple[str, Score]],
    *,
    head: str = "",
    note: str = "",
    only: Literal["page", "text"] | None = None,
) -> Table:
    """One score per row."""
    return Table(
        title=title,
        columns=(head, *SCORE_COLUMNS),
        rows=tuple(
            (name, one.precision, one.recall, one.f1, one.gold, one.predicted) for name, one in rows
        ),
        bar=3,
        note=note,
        only=only,
    )


def shown(cell: Cell) -> str:
    """A cell in words: counts with separators, shares in per cent with two decimals."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return percent(cell)
    return f"{cell:,}" if isinstance(cell, int) else clean(cell)


def clean(text: str) -> str:
    """One line that can be written anywhere: labels and examples come from anybody's files."""
    return _UNFIT.sub("\ufffd", " ".join(text.split()))


def percent(value: float) -> str:
    """A share in per cent, two decimals, without the sign."""
    return f"{100 * value:.2f}"


def is_wordy(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    """Does the column hold words, which read from the left, and no numbers?"""
    return column == 0 or any(isinstance(row[column], str) for row in rows)


def _markdown(table: Table) -> str:
    marks = [
        ":---" if is_wordy(table.rows, column) else "---:" for column in range(len(table.columns))
    ]
    lines = [table.columns, marks, *([shown(cell) for cell in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(_markdown_text(cell) for cell in line)} |" for line in lines)
    note = f"\n\n{_markdown_text(table.note)}" if table.note else ""
    return f"### {_markdown_text(table.title)}\n\n{body}{note}"


def _markdown_text(text: str) -> str:
    """Text that breaks no table."""
    return clean(text).replace("|", r"\|").replace("<", "&lt;")


def _html(table: Table) -> str:
    head = _html_row("th", table, table.columns)
    rows = "\n".join(_html_row("td", table, row) for row in table.rows)
    note = f'<p class="soft">{escape(clean(table.note))}</p>' if table.note else ""
    return (
        f"<section><h2>{escape(table.title)}</h2>\n<table><thead>{head}</thead>\n"
        f"<tbody>\n{rows}\n</tbody></table>{note}</section>"
    )


def _html_row(tag: str, table: Table, row: Sequence[Cell]) -> str:
    cells = []
    for column, cell in enumerate(row):
        kind = ' class="words" dir="auto"' if is_wordy(table.rows, column) else ""
        cells.append(f"<{tag}{kind}>{escape(shown(cell))}</{tag}>")
        if column == table.bar:
            bar = _bar(cell) if isinstance(cell, float) else ""
            cells.append(f"<{tag}>{bar}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _bar(value: float) -> str:
    width = round(100 * min(1.0, max(0.0, value)), 2)
    return (
        '<svg class="bar" width="100" height="8" aria-hidden="true">'
        '<rect class="track" width="100" height="8" rx="2"/>'
        f'<rect class="value" width="{width}" height="8" rx="2"/></svg>'
    )
