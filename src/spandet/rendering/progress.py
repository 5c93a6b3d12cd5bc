"""How far a stream has come: a line on stderr, with rate and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def watched(
    documents: Iterable[T], doing: str, *, total: int | None = None, done: int = 0
) -> Iterator[T]:
    """Pass documents on and show how many have gone by.

    Args:
        documents: The stream.
        doing: What is done to them ("predicting").
        total: How many there will be, where that is known.
        done: How many had gone by before (in an interrupted run); they do not count for the rate.
    """
    from rich.console import Console  # noqa: PLC0415 (slow to import)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    numbers = "{task.completed:,.0f}" + ("" if total is None else f" of {total:,}")
    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *([] if total is None else [BarColumn()]),
        TextColumn(f"{numbers} documents"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        *([] if total is None else [TextColumn("left:"), TimeRemainingColumn()]),
    ]
    with Progress(
        *columns,
        console=Console(stderr=True, highlight=False),
        transient=True,
        refresh_per_second=5,
    ) as bar:
        task = bar.add_task(doing, total=total, completed=done, rate="")
        for number, document in enumerate(documents, start=1):
            seconds = bar.tasks[task].elapsed or 0.0
            rate = f"{number / seconds:,.1f}/s" if seconds else ""
            bar.update(task, completed=done + number, rate=rate)
            yield document
