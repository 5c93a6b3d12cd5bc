"""One table, three renderings."""

from __future__ import annotations

import io

from rich.console import Console

from spandet.rendering.tables import Table, Tabular

SPEED = Table(
    title="Speed",
    columns=("words", "all/s", "tuned\nF1"),
    rows=(("all", "1,234.5", "80.00"), ("detector.layers.attention.dropout", "7.1", "")),
    formatted=True,
    note="A note | with a bar.",
    plots=("<svg>a plot</svg>",),
)
LABELS = Table(title="Labels", columns=("", "F1", "why"), rows=(("a", 0.5, "<b>"),), only="html")
COUNTS = Table(title="Counts", columns=("", "n"), rows=(("a", 1234),), only="text")


class Result(Tabular):
    @property
    def title(self) -> str:
        return "A result"

    @property
    def introduction(self) -> str:
        return "How to read it."

    def tables(self) -> list[Table]:
        return [SPEED, LABELS, COUNTS]


def test_markdown_aligns_formatted_numbers_right_and_escapes() -> None:
    assert Result().to_markdown() == (
        "## A result\n\nHow to read it.\n\n### Speed\n\n"
        "| words | all/s | tuned F1 |\n| :--- | ---: | ---: |\n| all | 1,234.5 | 80.00 |\n"
        "| detector.layers.attention.dropout | 7.1 |  |\n\nA note \\| with a bar.\n\n"
        "### Counts\n\n|  | n |\n| :--- | ---: |\n| a | 1,234 |\n"
    )


def test_a_terminal_folds_long_names_and_keeps_lines_of_headings() -> None:
    console = Console(file=io.StringIO(), width=40, color_system=None)
    console.print(Result())
    assert isinstance(console.file, io.StringIO)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == [
        "A result",
        "How to read it.",
        "",
        "Speed",
        "                                  tuned",
        " words                     all/s     F1",
        " all                     1,234.5  80.00",
        " detector.layers.attent      7.1",
        " ion.dropout",
        " A note | with a bar.",
        "",
        "Counts",
        "         n",
        " a   1,234",
    ]


def test_html_has_the_introduction_the_plots_and_their_style() -> None:
    html = Result().to_html()
    assert '<p class="soft">How to read it.</p>' in html
    assert "<figure><svg>a plot</svg></figure>" in html
    assert "svg.plot" in html
    assert '<td class="words" dir="auto">&lt;b&gt;</td>' in html
    assert "<td>50.00</td>" in html
    assert "<h2>Counts</h2>" not in html
