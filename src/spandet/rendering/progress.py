"""Progress on stderr: a bar or a counter in a terminal, lines of text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

T = TypeVar("T")


class ProgressDisplay:
    """Shows one task at a time, in a terminal only, and notes as lines of their own."""

    def __init__(self, *, silent: bool = False) -> None:
        from rich.console import Console  # noqa: PLC0415 (slow to import)

        self._console = Console(stderr=True, highlight=False, quiet=silent)
        self._running: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def note(self, text: str) -> None:
        """Print a line of text."""
        from rich.text import Text  # noqa: PLC0415

        self._console.print(Text(text), soft_wrap=True)

    def start(self, task: str, *, total: int | None = None, done: int = 0, unit: str = "") -> None:
        """Show a task in place of the one before.

        Args:
            task: What is done ("predicting").
            total: How many items there are, where known.
            done: How many of them were done before.
            unit: What the items are ("documents").
        """
        self.stop()
        if not self._console.is_terminal or self._console.quiet:
            return
        from rich.progress import Progress  # noqa: PLC0415

        progress = Progress(
            *_columns(total, unit), console=self._console, transient=True, refresh_per_second=5
        )
        self._running = progress, progress.add_task(task, total=total, completed=done, facts="")
        progress.start()

    def update(self, items: int = 1, facts: str = "") -> None:
        """Count some more items of the task as done; `facts` are shown beside the counter."""
        if self._running is not None:
            progress, task = self._running
            progress.update(task, advance=items, facts=facts)

    def stop(self) -> None:
        """Remove the task from the terminal."""
        if self._running is not None:
            self._running[0].stop()
            self._running = None


def show_progress(
    documents: Iterable[T], task: str, *, total: int | None = None, done: int = 0
) -> Iterator[T]:
    """Yield the documents and show how many there were, with their rate.

    Args:
        documents: The stream.
        task: What is done with them ("predicting").
        total: How many there will be, where known.
        done: How many were done before, in an interrupted run; they do not count for the rate.
    """
    with ProgressDisplay() as display:
        display.start(task, total=total, done=done, unit="documents")
        began = perf_counter()
        for number, document in enumerate(documents, start=1):
            seconds = perf_counter() - began
            display.update(facts=f"{number / seconds:,.1f}/s" if seconds else "")
            yield document


def _columns(total: int | None, unit: str) -> list[ProgressColumn]:
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    count = "{task.completed:,.0f}" + ("" if total is None else f" of {total:,}")
    return [
        TextColumn("{task.description}"),
        *([] if total is None else [BarColumn(bar_width=24)]),
        TextColumn(f"{count} {unit}".rstrip()),
        TextColumn("{task.fields[facts]}", markup=False),
        TimeElapsedColumn(),
        *([] if total is None else [TextColumn("left:"), TimeRemainingColumn()]),
    ]
