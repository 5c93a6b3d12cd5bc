"""spandet generate: synthetic documents with nested entities."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.options import Seed, ToFormat
from spandet.cli.terminal import progress
from spandet.formats import write
from spandet.generation import Domain, generate

Sentences = Annotated[int, typer.Option("--sentences", min=1, help="Number of sentences.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="A file, or - for standard output.")
]
DomainOption = Annotated[
    Domain,
    typer.Option(
        "--domain",
        help="The domain; both: news and bio; only clinic has discontinuous entities.",
    ),
]


def generate_command(
    sentences: Sentences = 100,
    seed: Seed = 0,
    domain: DomainOption = Domain.BOTH,
    output: Output = "-",
    to: ToFormat = None,
) -> None:
    """Write synthetic documents with nested entities; the same seed gives the same documents."""
    write(progress(generate(sentences, seed=seed, domain=domain), "generating"), output, to)
