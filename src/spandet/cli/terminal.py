"""What every command shows on the terminal: errors, notes, progress. All of it on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from spandet.formats.corpus import SHOWN_SKIPS, Corpus
from spandet.formats.overwriting import refuse_overwriting
from spandet.formats.records import report_json
from spandet.formats.target import Target
from spandet.rendering.progress import show_progress
from spandet.text import Document

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def show_error(error: Exception) -> None:
    """One line in red."""
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(str(error), err=True)


def note(text: str) -> None:
    """A remark that does not belong to the output."""
    typer.echo(text, err=True)


def console(*, stderr: bool = False) -> Console:
    """A rich console; loaded only by commands that draw."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


class Result(Protocol):
    """What a command has found, in every form it can be shown."""

    def to_json(self) -> Mapping[str, Any]:
        """Plain values for programs."""

    def to_markdown(self) -> str:
        """Tables for documents."""

    def to_html(self) -> str:
        """A whole page."""

    def __rich__(self) -> RenderableType:
        """For the terminal."""


def show(result: Result, *, json_: bool, markdown: bool, html: Path | None) -> None:
    """Print a result in the form that was asked for, and write its page."""
    if json_:
        typer.echo(report_json(result.to_json()))
    elif markdown:
        typer.echo(result.to_markdown())
    else:
        console().print(result)
    if html is not None:
        write_page([result.to_html()], html)


def write_page(parts: Iterable[str], path: Path) -> None:
    """Write an HTML page, whole or not at all, and say where it is."""
    with Target(str(path)).text() as out:
        out.writelines(parts)
    note(f"page: {path}")


def protect(corpora: Iterable[Corpus], page: Path | None) -> None:
    """Refuse a page in place of a file that is read.

    Raises:
        UsageError: the page would replace it.
    """
    if page is not None:
        refuse_overwriting([name for corpus in corpora for name in corpus.files()], str(page))


def progress(documents: Iterable[Document], doing: str) -> Iterator[Document]:
    """Pass documents on, with a running count where somebody is watching."""
    if not sys.stderr.isatty():
        yield from documents
        return
    yield from show_progress(documents, doing)


def report_skipped(count: int, problems: Sequence[object]) -> None:
    """Count the bad records that `--skip-bad` passed over, and list the first of them."""
    if not count:
        return
    note(f"skipped {count:,} bad records:")
    shown = problems[:SHOWN_SKIPS]
    for problem in shown:
        note(f"  {problem}")
    if count > len(shown):
        note(f"  … and {count - len(shown):,} more")
