"""What was measured as tables and plots: in a terminal, in Markdown and on a page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spandet.benchmarking.plots import STYLE
from spandet.rendering.html import page

if TYPE_CHECKING:
    from rich.console import RenderableType

_NAME_WIDTH = 10

_STYLE = """
section { overflow-x: auto; } table { font-variant-numeric: tabular-nums; margin: .4rem 0; }
th { color: var(--soft); font-weight: 500; } figure { margin: .4rem 0; }
"""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A titled table; the first column names its rows, the others hold numbers in words."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    plots: tuple[str, ...] = ()
    """SVG, for the page."""


class Sheet(ABC):
    """Measurements that can be looked at, and their plain values."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was measured."""

    @property
    @abstractmethod
    def lead(self) -> str:
        """How it was measured, and on what."""

    @abstractmethod
    def grids(self) -> Sequence[Grid]:
        """The tables, the most important one first."""

    @abstractmethod
    def to_json(self) -> Mapping[str, Any]:
        """Plain values for programs."""

    def to_markdown(self) -> str:
        """A heading and tables."""
        parts = [f"## {_markdown(self.title)}", _markdown(self.lead)]
        parts += [_markdown_grid(grid) for grid in self.grids()]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """One page that needs nothing else."""
        lead = f'<p class="soft">{escape(self.lead)}</p>'
        body = "\n".join([lead, *(_html_grid(grid) for grid in self.grids())])
        return page(title=self.title, body=body, style=STYLE + _STYLE)

    def __str__(self) -> str:
        return self.to_markdown()

    def __rich__(self) -> RenderableType:
        # Rich takes a while to load, and JSON does not need it.
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        parts: list[RenderableType] = [Text(self.title, style="bold"), Text(self.lead, style="dim")]
        for grid in self.grids():
            parts += [Text(f"\n{grid.title}", style="bold cyan"), _rich_grid(grid)]
            if grid.note:
                parts.append(Text(grid.note, style="dim"))
        return Group(*parts)


def _rich_grid(grid: Grid) -> RenderableType:
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    first, *others = [Text(name) for name in grid.columns]
    name = Column(first, overflow="fold", min_width=min(_NAME_WIDTH, _widest(grid)))
    columns = [name, *(Column(head, justify="right") for head in others)]
    table = Table(*columns, box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for row in grid.rows:
        table.add_row(*map(Text, row))
    return table


def _widest(grid: Grid) -> int:
    return max((len(row[0]) for row in grid.rows), default=0)


def _markdown_grid(grid: Grid) -> str:
    marks = [":---", *["---:"] * (len(grid.columns) - 1)]
    lines = [grid.columns, marks, *grid.rows]
    body = "\n".join(f"| {' | '.join(map(_markdown, line))} |" for line in lines)
    note = f"\n\n{_markdown(grid.note)}" if grid.note else ""
    return f"### {_markdown(grid.title)}\n\n{body}{note}"


def _markdown(text: str) -> str:
    """Text that breaks no table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")


def _html_grid(grid: Grid) -> str:
    plots = "".join(f"<figure>{plot}</figure>" for plot in grid.plots if plot)
    head, *body = [_html_row("th", grid.columns), *(_html_row("td", row) for row in grid.rows)]
    rows = "\n".join(body)
    note = f'<p class="soft">{escape(grid.note)}</p>' if grid.note else ""
    return (
        f"<section><h2>{escape(grid.title)}</h2>\n{plots}\n<table><thead>{head}</thead>\n"
        f"<tbody>\n{rows}\n</tbody></table>{note}</section>"
    )


def _html_row(tag: str, row: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"
