"""spandet select TEXT... --like CORPUS: select the raw text that is most similar to a corpus."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from spandet.cli.terminal import note, progress
from spandet.errors import UsageError
from spandet.formats import read

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

Texts = Annotated[
    list[str], typer.Argument(metavar="TEXT...", help="Files or folders of raw text, any format.")
]
Like = Annotated[
    list[str], typer.Option("--like", metavar="CORPUS", help="Corpus to resemble; repeatable.")
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the selected text.")
]
Most = Annotated[str, typer.Option("--most", metavar="SIZE", help="Maximum size, such as 100MB.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="FILE",
        help="Leave out passages that share a long string with this file; repeatable.",
    ),
]
LeastWords = Annotated[
    int, typer.Option("--least-words", help="Leave out passages with fewer words.")
]
SharedWords = Annotated[
    int, typer.Option("--shared-words", help="Words in a row that count as a long string.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]


def select_command(
    texts: Texts,
    like: Like,
    output: Output,
    most: Most = "100MB",
    without: Without = None,
    least_words: LeastWords = 20,
    shared_words: SharedWords = 12,
    resume: Resume = False,
) -> None:
    """Select the passages of raw text that are most similar to a corpus, without near duplicates.

    A passage is a document of the text: it is kept or left out as a whole. Its score, the
    difference of cross-entropies in nats per word, is written as its metadata "likeness".
    """
    from spandet.selection import SelectionSettings, select

    settings = SelectionSettings.build(
        {
            "most_bytes": size_in_bytes(most),
            "least_words": least_words,
            "shared_words": shared_words,
        },
        where="select",
    )
    made = select(
        [read(path) for path in texts],
        [read(path) for path in like],
        output,
        without=[read(path) for path in without or ()],
        settings=settings,
        resume=resume,
        progress=progress,
    )
    note(
        f"{made.kept:,} of {made.passages:,} passages, {made.kept_bytes / 1e6:,.1f} MB, likeness "
        f"up to {made.worst_score:.3f}; left out: {made.short:,} short, {made.shared:,} with a "
        f"shared string, {made.duplicates:,} near duplicates"
    )


def size_in_bytes(text: str) -> int:
    """Parse a size such as 100MB, 1.5 GB or 4000, in bytes.

    Raises:
        UsageError: the text is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < 1:
        raise UsageError(f"--most is {text!r}, expected a size such as 100MB")
    return size
