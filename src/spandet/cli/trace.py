"""spandet trace MODEL TEXT: how the entities of a text come about, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spandet.cli.options import FromFormat, Html, MinScore, Model, Set
from spandet.cli.terminal import console, progress, protect, write_page
from spandet.errors import UsageError
from spandet.formats import read
from spandet.formats.records import dump_json
from spandet.text import Document

if TYPE_CHECKING:
    from spandet.inference.tracing import TracedDocument

RawText = Annotated[str | None, typer.Argument(metavar="TEXT", help="The text itself.")]
Input = Annotated[
    str | None,
    typer.Option(
        "--input", "-i", metavar="FILE", help="Documents instead of TEXT; their entities are gold."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Most documents to trace (terminal: 10 if not given)."),
]
AllStages = Annotated[
    bool, typer.Option("--all-stages", help="Print every stage, however many there are.")
]
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print a JSON object per document; ends are exclusive there.")
]

_TERMINAL_LIMIT = 10


def trace_command(
    model: Model,
    text: RawText = None,
    input_: Input = None,
    from_: FromFormat = None,
    limit: Limit = None,
    min_score: MinScore = None,
    set_: Set = None,
    all_stages: AllStages = False,
    json_: JsonLines = False,
    html: Html = None,
) -> None:
    """Show how entities come about: predicted ← last stage ← … ← first stage.

    (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01) goes from word 2 to word 3, both
    included, as in the papers' case studies; in JSON, ends are exclusive.

    With gold, ✓ is right, ✗ is wrong, and ○ was missed: the line below it is
    the candidate nearest to it. A FILE without entities has no gold.
    """
    documents, gold = _documents(text, input_, from_, html)
    most = limit if json_ or html is not None else limit or _TERMINAL_LIMIT
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.inference.recognizer import Recognizer
    from spandet.inference.tracing import trace

    recognizer = Recognizer.from_pretrained(model, set_ or ())
    watched = progress(islice(documents, most), "tracing")
    traced: Iterable[TracedDocument] = (
        trace(recognizer, each, gold=gold, min_score=min_score) for each in watched
    )
    if json_:
        traced = _printed(traced)
    if html is not None:
        from spandet.viewing import trace_to_html

        write_page([trace_to_html(traced, title=_title(model, input_))], html)
    elif json_:
        for _ in traced:
            pass
    else:
        _show(traced, all_stages=all_stages)


def _documents(
    text: str | None, input_: str | None, from_: str | None, html: Path | None
) -> tuple[Iterable[Document], bool]:
    """What to trace, and whether its entities are gold."""
    if text is not None and input_ is None:
        if from_ is not None:
            raise UsageError("--from is the format of --input FILE; a TEXT has none")
        return [Document(text)], False
    if input_ is None or text is not None:
        what = "neither" if text is None else "both"
        raise UsageError(f"trace needs a TEXT or --input FILE, got {what}")
    corpus = read(input_, from_)
    protect([corpus], html)
    documents = iter(corpus)
    head = []
    for document in documents:
        head.append(document)
        if document.entities:
            break
    return chain(head, documents), bool(head and head[-1].entities)


def _printed(traced: Iterable[TracedDocument]) -> Iterator[TracedDocument]:
    """Pass on what has been printed as JSON."""
    for each in traced:
        typer.echo(dump_json(each.to_json()))
        yield each


def _show(traced: Iterable[TracedDocument], *, all_stages: bool) -> None:
    from spandet.viewing import trace_to_terminal

    screen = console()
    width = screen.width if screen.is_terminal else None  # a pipe gets whole lines
    color = screen.color_system is not None
    for line in trace_to_terminal(traced, width=width, color=color, all_stages=all_stages):
        screen.print(line, soft_wrap=True)


def _title(model: str, input_: str | None) -> str:
    name = Path(model).resolve().name
    return name if input_ is None else f"{name} on {Path(input_).name}"
