"""spandet generate: nested sentences out of a small grammar, for demos and tests."""

from __future__ import annotations

from typing import Annotated

import typer

from spandet.cli.options import Seed, ToFormat
from spandet.cli.terminal import progress
from spandet.formats import write
from spandet.generation import Domain, generate

Sentences = Annotated[int, typer.Option("--sentences", min=1, help="How many to write.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="A file, or - for standard output.")
]
DomainOption = Annotated[
    Domain,
    typer.Option(
        "--domain",
        help="What they are about; both: news and bio; clinic: has discontinuous entities.",
    ),
]


def generate_command(
    sentences: Sentences = 100,
    seed: Seed = 0,
    domain: DomainOption = Domain.BOTH,
    output: Output = "-",
    to: ToFormat = None,
) -> None:
    """Write varied nested sentences, news-like and biomedical-like; the same for the same seed."""
    write(progress(generate(sentences, seed=seed, domain=domain), "generating"), output, to)
