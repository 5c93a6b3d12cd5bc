"""spandet formats: list the formats that can be read and written."""

from __future__ import annotations

from spandet.cli.terminal import console
from spandet.formats import FORMATS


def formats_command() -> None:
    """List the formats with their suffixes; every file may be gzipped."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("format", "read", "write", "suffixes", "description"):
        table.add_column(heading, overflow="fold")
    for name, row in FORMATS.items():
        can_read, can_write = (
            "" if function is None else "✓" for function in (row.read, row.write)
        )
        table.add_row(name, can_read, can_write, " ".join(row.suffixes), row.description)
    console().print(table)
