"""spandet trace MODEL TEXT: the stages of each entity that a model predicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spandet.cli.options import FromFormat, Html, Model, Set, takes
from spandet.cli.terminal import check_output, console, progress, write_html
from spandet.errors import UsageError
from spandet.formats import read
from spandet.formats.records import dump_json
from spandet.inference.options import PredictOptions
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.inference.tracing import TracedDocument

RawText = Annotated[str | None, typer.Argument(metavar="TEXT", help="The text to predict.")]
Input = Annotated[
    str | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help="Documents instead of TEXT; their entities are gold annotations.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, help="Maximum number of documents (in the terminal 10 by default)."
    ),
]
AllStages = Annotated[
    bool,
    typer.Option(
        "--all-stages", help="Print all stages; otherwise the middle ones of many are omitted."
    ),
]
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per document, with exclusive ends.")
]

_TERMINAL_LIMIT = 10


@takes(PredictOptions, "min_score")
def trace_command(
    model: Model,
    text: RawText = None,
    input_: Input = None,
    from_: FromFormat = None,
    limit: Limit = None,
    *,
    options: PredictOptions,
    set_: Set = None,
    all_stages: AllStages = False,
    json_: JsonLines = False,
    html: Html = None,
) -> None:
    """Show the trajectory of each entity: prediction ← last stage ← … ← first stage.

    (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01) is an entity from word 2 to word
    3, both included, as in the papers' case studies; in JSON, ends are
    exclusive.

    With gold annotations, ✓ is correct, ✗ is wrong and ○ is missed, followed
    by the nearest candidate. A FILE without entities has no gold annotations.
    """
    documents, gold = _documents(text, input_, from_, html)
    maximum = limit if json_ or html is not None else limit or _TERMINAL_LIMIT
    # Imported after the input is checked, because torch takes seconds to load.
    from spandet.inference.recognizer import Recognizer
    from spandet.inference.tracing import trace

    recognizer = Recognizer.from_pretrained(model, set_ or ())
    traced: Iterable[TracedDocument] = (
        trace(recognizer, document, gold=gold, min_score=options.min_score)
        for document in progress(islice(documents, maximum), "tracing")
    )
    if json_:
        traced = _printed(traced)
    if html is not None:
        from spandet.viewing import trace_to_html

        write_html([trace_to_html(traced, title=_title(model, input_))], html)
    elif json_:
        for _ in traced:
            pass
    else:
        _show(traced, all_stages=all_stages)


def _documents(
    text: str | None, input_: str | None, from_: str | None, html: Path | None
) -> tuple[Iterable[Document], bool]:
    """The documents, and whether their entities are gold annotations."""
    if text is not None and input_ is None:
        if from_ is not None:
            raise UsageError("--from is the format of --input FILE; a TEXT has none")
        return [Document(text)], False
    if input_ is None or text is not None:
        what = "neither" if text is None else "both"
        raise UsageError(f"trace needs a TEXT or --input FILE, got {what}")
    corpus = read(input_, from_)
    check_output([corpus], html)
    documents = iter(corpus)
    first = []
    for document in documents:
        first.append(document)
        if document.entities:
            break
    return chain(first, documents), bool(first and first[-1].entities)


def _printed(traced: Iterable[TracedDocument]) -> Iterator[TracedDocument]:
    """Print each trace as JSON and yield it."""
    for each in traced:
        typer.echo(dump_json(each.to_json()))
        yield each


def _show(traced: Iterable[TracedDocument], *, all_stages: bool) -> None:
    from spandet.viewing import trace_to_terminal

    screen = console()
    width = screen.width if screen.is_terminal else None  # lines are not wrapped in a pipe
    color = screen.color_system is not None
    for line in trace_to_terminal(traced, width=width, color=color, all_stages=all_stages):
        screen.print(line, soft_wrap=True)


def _title(model: str, input_: str | None) -> str:
    name = Path(model).resolve().name
    return name if input_ is None else f"{name} on {Path(input_).name}"
