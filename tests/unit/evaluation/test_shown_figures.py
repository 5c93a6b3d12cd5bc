"""The printed text of scores and comparisons."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from spandet import generate
from spandet.evaluation import compare, evaluate
from spandet.evaluation.bootstrap import Interval
from spandet.evaluation.comparison import Comparison, Draws
from spandet.evaluation.errors import ErrorCounter
from spandet.evaluation.scores import score
from spandet.evaluation.tally import length_group
from spandet.rendering.tables import Table
from spandet.rendering.terminal import terminal_tables

A = score(correct=50, predicted=100, gold=100)
B = score(correct=60, predicted=100, gold=100)
DRAWS = Draws(Interval(0.04, 0.16), 0.0123, wins_a=4, wins_b=995, ties=1)


def shown(*tables: Table) -> list[str]:
    """The lines of a terminal of 80 columns without colour."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(terminal_tables("Title", tables))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_comparison_is_shown_in_points() -> None:
    compared = Comparison(documents=30, a=A, b=B, draws=DRAWS, resamples=1000)
    assert compared.title == "B − A: +10.00 F1, p = 0.0123"
    (table,) = compared.tables()
    assert table.note == (
        "30 documents. 95 % interval of the difference: +4.00 to +16.00. In 1,000 resamples of "
        "documents, A wins 4, B wins 995, ties 1."
    )
    without = Comparison(documents=1, a=A, b=B, draws=None, resamples=0)
    assert without.title == "B − A: +10.00 F1"


def test_tables_in_a_terminal() -> None:
    rows = (("short", 1, 0.5), ("longer name", 20, 1.0))
    bars = Table(title="Bars", columns=("", "n", "F1"), rows=rows, bar=2)
    reasons = (("x", "because of this"),)
    words = Table(title="Words", columns=("", "why"), rows=reasons, note="A note.")
    assert shown(bars, words) == [
        "Title",
        "",
        "Bars",
        "                   n      F1",
        " short             1   50.00  ███████",
        " longer name      20  100.00  ██████████████",
        "",
        "Words",
        "    why",
        " x  because of this",
        " A note.",
    ]


@pytest.mark.parametrize(
    ("length", "group"), [(1, "1-4"), (4, "1-4"), (5, "5-9"), (9, "5-9"), (10, "10+"), (99, "10+")]
)
def test_groups_of_lengths(length: int, group: str) -> None:
    assert length_group(length) == group


def test_the_default_number_of_resamples_and_seed() -> None:
    gold = list(generate(400, seed=1))
    found = [replace(d, entities=d.entities[n % 7 :]) for n, d in enumerate(gold)]
    assert evaluate(gold, found) == evaluate(gold, found, resamples=1000, seed=0)
    other = evaluate(gold, found, resamples=1000, seed=1)
    assert evaluate(gold, found).intervals != other.intervals
    default = compare(gold, found, gold)
    assert default == compare(gold, found, gold, resamples=10_000, seed=0)


def test_the_most_frequent_confusion_is_first_and_equals_are_in_order() -> None:
    errors = ErrorCounter()
    errors.confusion.update({("b", "a"): 2, ("a", "c"): 2, ("z", "y"): 5})
    assert list(errors.result().confusion) == [("z", "y"), ("a", "c"), ("b", "a")]
