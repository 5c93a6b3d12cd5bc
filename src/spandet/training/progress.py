"""What a run shows while it runs: bars in a terminal, a line per epoch elsewhere; all on stderr."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from spandet.training.checkpoint import EpochRecord


class Screen:
    """Shows how a run goes; silent where nobody asked for it."""

    def __init__(self, *, silent: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, quiet=silent)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._title = ""

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
        """A remark in a line of its own."""
        self._console.print(Text(text), soft_wrap=True)

    def begin_epoch(self, epoch: int, epochs: int, sentences: int, done: int) -> None:
        """An epoch (counted from 0) begins or is resumed."""
        self._title = f"epoch {epoch + 1}/{epochs}"
        self._begin(self._title, sentences, done)

    def advance(self, sentences: int, per_second: float, losses: Mapping[str, float]) -> None:
        """So many sentences more."""
        if self._bar is not None:
            self._show(sentences, f"loss {_losses(losses)}  {per_second:.1f} sentences/s")

    def begin_part(self, name: str, total: int) -> None:
        """Something besides training begins, so many things long."""
        self._begin(f"{self._title} {name}".lstrip(), total, 0)

    def advance_part(self, number: int) -> None:
        """So many things more."""
        self._show(number, "")

    def end_epoch(self, record: EpochRecord, epochs: int, *, is_best: bool) -> None:
        """The epoch is over."""
        self.stop()
        parts = [
            f"epoch {record.epoch}/{epochs}",
            f"loss {_losses(record.losses)}",
            f"{record.sentences_per_second:.1f} sentences/s",
        ]
        if record.dev is not None:
            dev = record.dev
            scores = f"dev P {100 * dev.precision:.2f} R {100 * dev.recall:.2f}"
            parts.append(f"{scores} F1 {100 * dev.f1:.2f}{' best' if is_best else ''}")
        self.note("  ".join([*parts, clock(record.seconds)]))

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _begin(self, title: str, total: int, done: int) -> None:
        self.stop()
        if not self._console.is_terminal or self._console.quiet:
            return
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            console=self._console,
            transient=True,
            refresh_per_second=4,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, facts="")
        self._bar.start()

    def _show(self, advance: int, facts: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=advance, facts=facts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _losses(losses: Mapping[str, float]) -> str:
    """The sum, then its parts."""
    parts = ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
    total = sum(losses.values())
    return f"{total:.4f} ({parts})" if len(losses) > 1 else f"{total:.4f}"
