"""spandet convert IN OUT: convert documents from one format to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from spandet.cli.options import FromFormat, Input, SkipBad, ToFormat
from spandet.cli.terminal import note, progress, report_skipped
from spandet.formats import read, write
from spandet.formats.overwriting import refuse_overwriting
from spandet.text import Document

Output = Annotated[str, typer.Argument(help="A file, a folder, or - for standard output.")]


def convert_command(
    input_: Input,
    output: Output = "-",
    from_: FromFormat = None,
    to: ToFormat = None,
    skip_bad: SkipBad = False,
) -> None:
    """Convert documents from one format to another. The output is complete or not written."""
    corpus = read(input_, from_, skip_bad=skip_bad)
    refuse_overwriting([input_, *corpus.files()], output)
    count = _Count()
    write(count.of(progress(corpus, "converting")), output, to)
    report_skipped(corpus.skips, corpus.skipped)
    note(f"{count.documents:,} documents, {count.sentences}, {count.entities:,} entities")


@dataclass
class _Count:
    documents: int = 0
    entities: int = 0
    known_sentences: int = 0

    def of(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self.documents += 1
            self.entities += len(document.entities)
            # Raw text is not split into sentences only to count them.
            self.known_sentences += len(document.own_sentences or ())
            yield document

    @property
    def sentences(self) -> str:
        return f"{self.known_sentences:,} sentences" if self.known_sentences else "raw text"
