"""spandet stats FILE: statistics of a corpus."""

from __future__ import annotations

from spandet.cli.options import FromFormat, Html, Input, Json, Markdown, SkipBad
from spandet.cli.terminal import check_output, progress, report_skipped, show
from spandet.evaluation import describe
from spandet.formats import read


def stats_command(
    input_: Input,
    from_: FromFormat = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    skip_bad: SkipBad = False,
) -> None:
    """Count sentences, words and entities, by label, nesting, depth and length."""
    corpus = read(input_, from_, skip_bad=skip_bad)
    check_output([corpus], html)
    statistics = describe(progress(corpus, "counting"))
    report_skipped(corpus.skips, corpus.skipped)
    show(statistics, json_=json_, markdown=markdown, html=html)
