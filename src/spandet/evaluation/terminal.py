"""Tables in a terminal: compact, aligned, readable at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from spandet.evaluation.tables import Cell, Table, clean, is_wordy, shown

_BAR_WIDTH = 14
_NAME_WIDTH = 22


def renderable(title: str, tables: Sequence[Table]) -> RenderableType:
    """All tables under a title; tables with bars share their first column's width."""
    names = [shown(row[0]) for table in tables if table.bar is not None for row in table.rows]
    width = min(_NAME_WIDTH, max((Text(name).cell_len for name in names), default=0))
    parts: list[RenderableType] = [Text(title, style="bold")]
    for table in tables:
        parts += [Text(f"\n{table.title}", style="bold cyan"), _grid(table, width)]
        if table.note:
            parts.append(Padding(Text(clean(table.note), style="dim"), (0, 0, 0, 1)))
    return Group(*parts)


def _grid(table: Table, width: int) -> RichTable:
    grid = RichTable(
        *_columns(table, width), box=None, padding=(0, 1), pad_edge=True, header_style="dim"
    )
    for row in table.rows:
        grid.add_row(*_cells(table, row))
    return grid


def _columns(table: Table, width: int) -> list[Column]:
    columns = [Column(Text(table.columns[0]), no_wrap=True, overflow="ellipsis")]
    columns[0].max_width = _NAME_WIDTH
    columns[0].min_width = width if table.bar is not None else None
    for number, head in enumerate(table.columns[1:], 1):
        if is_wordy(table.rows, number):
            columns.append(Column(Text(clean(head)), overflow="fold"))
        else:
            # Wide enough for "100.00", so that the tables stand in line.
            columns.append(Column(Text(clean(head)), justify="right", no_wrap=True, min_width=6))
        if number == table.bar:
            columns.append(Column("", width=_BAR_WIDTH))
    return columns


def _cells(table: Table, row: tuple[Cell, ...]) -> list[RenderableType]:
    cells: list[RenderableType] = []
    for number, cell in enumerate(row):
        # Text, because a label such as "[b]" is no markup.
        bold = number == table.bar
        cells.append(Text(shown(cell), style="bold" if bold else ""))
        if bold:
            share = cell if isinstance(cell, float) else 0.0
            cells.append(Bar(1, 0, share, width=_BAR_WIDTH, color="cyan"))
    return cells
