"""spandet view FILE [PREDICTED]: show entities in the terminal or as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Input, PredictedFrom
from spandet.cli.terminal import check_output, console, write_html
from spandet.evaluation import aligned, projected
from spandet.formats import read
from spandet.text import Document

Predicted = Annotated[
    str | None, typer.Argument(help="Predictions to compare with the first file, which is gold.")
]
HtmlOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write a self-contained HTML page."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="Maximum number of documents (in the terminal 10 by default)."
    ),
]

_TERMINAL_LIMIT = 10


def view_command(
    input_: Input,
    predicted: Predicted = None,
    output: HtmlOutput = None,
    limit: Limit = None,
    from_: FromFormat = None,
    predicted_from: PredictedFrom = None,
) -> None:
    """Show nested entities; with PREDICTED, show hits, misses and false alarms."""
    from spandet import viewing

    maximum = limit if output is not None else limit or _TERMINAL_LIMIT
    documents = read(input_, from_)
    found = None if predicted is None else read(predicted, predicted_from)
    check_output([documents] if found is None else [documents, found], output)
    screen = console()
    width, color = screen.width, screen.color_system is not None
    if predicted is None or found is None:
        shown = islice(documents, maximum)
        if output is not None:
            write_html([viewing.to_html(shown, title=Path(input_).name)], output)
            return
        lines = viewing.to_terminal(shown, width=width, color=color)
    else:
        pairs = islice(_pairs(documents, found), maximum)
        if output is not None:
            title = f"{Path(input_).name} and {Path(predicted).name}"
            write_html([viewing.comparison_to_html(pairs, title=title)], output)
            return
        lines = viewing.comparison_to_terminal(pairs, width=width, color=color)
    for line in lines:
        screen.print(line, soft_wrap=True)


def _pairs(
    gold: Iterable[Document], predicted: Iterable[Document]
) -> Iterator[tuple[Document, Document]]:
    rows = aligned({"gold": gold, "predicted": predicted})
    for number, (one, other) in enumerate(rows, start=1):
        yield one, projected(other, onto=one, number=number)
