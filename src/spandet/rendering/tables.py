"""Results as tables, rendered for the terminal (rich), as Markdown and as HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from re import compile as compile_pattern
from typing import TYPE_CHECKING, Literal, TypeAlias

from spandet.rendering import svg
from spandet.rendering.html import html_page

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell: TypeAlias = str | int | float | None
"""Text, a count, a share (0 to 1, shown as a percentage), or an empty cell."""

TABLE_STYLE = """
table { font-variant-numeric: tabular-nums; margin: .4rem 0; }
section { overflow-x: auto; }
th { color: var(--soft); font-weight: 500; }
th.words, td.words { text-align: start; overflow-wrap: break-word; max-width: 28rem; }
svg.bar { vertical-align: middle; }
svg.bar .track { fill: var(--line); } svg.bar .value { fill: #3e63dd; }
@media (prefers-color-scheme: dark) { svg.bar .value { fill: #849dff; } }
"""

# Control characters, which could send commands to a terminal, and lone surrogates.
_UNPRINTABLE = compile_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with a title; the first column holds the names of the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bar: int | None = None
    """The column whose shares are also drawn as bars."""
    formatted: bool = False
    """All columns but the first hold numbers that are formatted already, as strings."""
    note: str = ""
    plots: tuple[str, ...] = ()
    """SVG images, shown above the table in HTML only."""
    only: Literal["html", "text"] | None = None
    """Show the table only in HTML, or only in the terminal and in Markdown."""

    def is_text(self, column: int) -> bool:
        """Whether a column holds text, which is aligned left, and not numbers."""
        if column == 0 or self.formatted:
            return column == 0
        return any(isinstance(row[column], str) for row in self.rows)


class Tabular(ABC):
    """A result that consists of tables. `rich.print` shows it in colour, `print` as Markdown."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The result in a few words."""

    @property
    def introduction(self) -> str:
        """A paragraph above the tables: how to read them."""
        return ""

    @abstractmethod
    def tables(self) -> Iterable[Table]:
        """The tables, the most important first."""

    def to_markdown(self) -> str:
        """A heading, the introduction and the tables."""
        parts = [f"## {_markdown_text(self.title)}"]
        if self.introduction:
            parts.append(_markdown_text(self.introduction))
        parts += [
            f"### {_markdown_text(table.title)}\n\n{markdown_table(table)}"
            for table in self.tables()
            if table.only != "html"
        ]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """A self-contained HTML page."""
        tables = [table for table in self.tables() if table.only != "text"]
        parts = [f'<p class="soft">{escape(self.introduction)}</p>'] if self.introduction else []
        for table in tables:
            plots = "".join(f"<figure>{plot}</figure>\n" for plot in table.plots if plot)
            title = escape(table.title)
            parts.append(f"<section><h2>{title}</h2>\n{plots}{html_table(table)}</section>")
        style = TABLE_STYLE + (svg.STYLE if any(table.plots for table in tables) else "")
        return html_page(title=self.title, body="\n".join(parts), style=style)

    def __str__(self) -> str:
        return self.to_markdown()

    def __rich__(self) -> RenderableType:
        # Imported here because rich takes a while to load, and a JSON report does not need it.
        from spandet.rendering.terminal import terminal_tables  # noqa: PLC0415

        tables = [table for table in self.tables() if table.only != "html"]
        return terminal_tables(self.title, tables, introduction=self.introduction)


def markdown_table(table: Table) -> str:
    """The table and its note as Markdown, without the title."""
    alignment = [
        ":---" if table.is_text(column) else "---:" for column in range(len(table.columns))
    ]
    lines = [table.columns, alignment, *([cell_text(cell) for cell in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(_markdown_text(cell) for cell in line)} |" for line in lines)
    return body + (f"\n\n{_markdown_text(table.note)}" if table.note else "")


def html_table(table: Table) -> str:
    """The table and its note as HTML, without the title."""
    head = _html_row("th", table, table.columns)
    rows = "\n".join(_html_row("td", table, row) for row in table.rows)
    note = f'<p class="soft">{escape(clean(table.note))}</p>' if table.note else ""
    return f"<table><thead>{head}</thead>\n<tbody>\n{rows}\n</tbody></table>{note}"


def cell_text(cell: Cell) -> str:
    """A cell as text: counts with separators, shares as percentages with two decimals."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return percent(cell)
    return f"{cell:,}" if isinstance(cell, int) else clean(cell)


def clean(text: str) -> str:
    """One line of printable text; labels and examples may contain anything."""
    return _UNPRINTABLE.sub("\ufffd", " ".join(text.split()))


def percent(share: float) -> str:
    """A share as a percentage with two decimals, without the percent sign."""
    return f"{100 * share:.2f}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, such as 1:02:05 or 2:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _markdown_text(text: str) -> str:
    """Escape what would break a Markdown table."""
    return clean(text).replace("|", r"\|").replace("<", "&lt;")


def _html_row(tag: str, table: Table, row: Sequence[Cell]) -> str:
    cells = []
    for column, cell in enumerate(row):
        kind = ' class="words" dir="auto"' if table.is_text(column) else ""
        cells.append(f"<{tag}{kind}>{escape(cell_text(cell))}</{tag}>")
        if column == table.bar:
            bar = _html_bar(cell) if isinstance(cell, float) else ""
            cells.append(f"<{tag}>{bar}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _html_bar(share: float) -> str:
    width = round(100 * min(1.0, max(0.0, share)), 2)
    return (
        '<svg class="bar" width="100" height="8" aria-hidden="true">'
        '<rect class="track" width="100" height="8" rx="2"/>'
        f'<rect class="value" width="{width}" height="8" rx="2"/></svg>'
    )
