"""Tables in the terminal, readable at 80 columns and without colour; imported only to print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from spandet.rendering.tables import Cell, Table, cell_text, clean

_BAR_WIDTH = 14
_NAME_WIDTH = 22
"""Maximum width of row names in tables with bars."""
_FOLDED_WIDTH = 8
"""Minimum width of row names elsewhere, where they are folded."""
_NUMBER_WIDTH = 6
"""Minimum width of counts and shares: "100.00". So the columns of several tables are aligned."""


def terminal_tables(
    title: str, tables: Sequence[Table], *, introduction: str = ""
) -> RenderableType:
    """All tables under a title; tables with bars have first columns of the same width."""
    names = [cell_text(row[0]) for table in tables if table.bar is not None for row in table.rows]
    width = min(_NAME_WIDTH, max((Text(name).cell_len for name in names), default=0))
    parts: list[RenderableType] = [Text(title, style="bold")]
    if introduction:
        parts.append(Text(introduction, style="dim"))
    for table in tables:
        parts += [Text(f"\n{table.title}", style="bold cyan"), _rich_table(table, width)]
        if table.note:
            parts.append(Padding(Text(clean(table.note), style="dim"), (0, 0, 0, 1)))
    return Group(*parts)


def _rich_table(table: Table, name_width: int) -> RichTable:
    columns = [_name_column(table, name_width)]
    for number in range(1, len(table.columns)):
        columns.append(_column(table, number))
        if number == table.bar:
            columns.append(Column("", width=_BAR_WIDTH))
    grid = RichTable(*columns, box=None, padding=(0, 1), pad_edge=True, header_style="dim")
    for row in table.rows:
        grid.add_row(*_cells(table, row))
    return grid


def _name_column(table: Table, width: int) -> Column:
    heading = _heading(table.columns[0])
    if table.bar is None:
        widest = max((Text(cell_text(row[0])).cell_len for row in table.rows), default=0)
        return Column(heading, overflow="fold", min_width=min(_FOLDED_WIDTH, widest))
    column = Column(heading, no_wrap=True, overflow="ellipsis", min_width=width)
    column.max_width = _NAME_WIDTH
    return column


def _column(table: Table, number: int) -> Column:
    heading = _heading(table.columns[number])
    if table.is_text(number):
        return Column(heading, overflow="fold")
    if table.formatted:
        return Column(heading, justify="right")
    return Column(heading, justify="right", no_wrap=True, min_width=_NUMBER_WIDTH)


def _heading(text: str) -> Text:
    return Text("\n".join(map(clean, text.split("\n"))))


def _cells(table: Table, row: tuple[Cell, ...]) -> list[RenderableType]:
    cells: list[RenderableType] = []
    for number, cell in enumerate(row):
        has_bar = number == table.bar
        # A Text object, because a string such as the label "[b]" would be read as markup.
        cells.append(Text(cell_text(cell), style="bold" if has_bar else ""))
        if has_bar:
            share = cell if isinstance(cell, float) else 0.0
            cells.append(Bar(1, 0, share, width=_BAR_WIDTH, color="cyan"))
    return cells
