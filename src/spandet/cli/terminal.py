"""Output of commands: results on stdout; errors, notes and progress on stderr."""

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
    """Print an error as one line."""
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo(str(error), err=True)


def note(text: str) -> None:
    """Print a line to stderr."""
    typer.echo(text, err=True)


def note_mean_threshold(
    folders: Sequence[Path], overrides: Iterable[str] = (), min_score: float | None = None
) -> None:
    """Print that the threshold of an ensemble is not tuned, unless one is given."""
    given = min_score is not None or any(o.startswith("decoding.threshold") for o in overrides)
    if len(folders) > 1 and not given:
        note(
            "ensemble: the threshold is the mean of the members' thresholds; `spandet ensemble` "
            "tunes one"
        )


def console(*, stderr: bool = False) -> Console:
    """A rich console; rich is loaded only by commands that use it."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


class Result(Protocol):
    """A result that can be printed as JSON, Markdown, HTML or in the terminal."""

    def to_json(self) -> Mapping[str, Any]:
        """A JSON object."""

    def to_markdown(self) -> str:
        """Markdown tables."""

    def to_html(self) -> str:
        """A self-contained HTML page."""

    def __rich__(self) -> RenderableType:
        """Tables for the terminal."""


def show(result: Result, *, json_: bool, markdown: bool, html: Path | None) -> None:
    """Print a result in the chosen form, and write its HTML page if a path is given."""
    if json_:
        typer.echo(report_json(result.to_json()))
    elif markdown:
        typer.echo(result.to_markdown())
    else:
        console().print(result)
    if html is not None:
        write_html([result.to_html()], html)


def write_html(parts: Iterable[str], path: Path) -> None:
    """Write an HTML page atomically, and print its path."""
    with Target(str(path)).text() as out:
        out.writelines(parts)
    note(f"wrote {path}")


def check_output(corpora: Iterable[Corpus], output: Path | None) -> None:
    """Check that the output is not one of the input files.

    Raises:
        UsageError: the output would overwrite an input file.
    """
    if output is not None:
        refuse_overwriting([name for corpus in corpora for name in corpus.files()], str(output))


def progress(documents: Iterable[Document], task: str) -> Iterator[Document]:
    """Yield the documents, and show progress if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from documents
        return
    yield from show_progress(documents, task)


def report_skipped(count: int, problems: Sequence[object]) -> None:
    """Print the number of records that `--skip-bad` skipped, and list the first of them."""
    if not count:
        return
    note(f"skipped {count:,} bad records:")
    shown = problems[:SHOWN_SKIPS]
    for problem in shown:
        note(f"  {problem}")
    if count > len(shown):
        note(f"  … and {count - len(shown):,} more")
