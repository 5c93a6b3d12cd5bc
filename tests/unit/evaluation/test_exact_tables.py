"""Reports, statistics and their tables by hand, where every number differs from every other."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from spandet.evaluation import describe, evaluate
from spandet.evaluation.bootstrap import Interval, intervals, middle, resampled
from spandet.evaluation.errors import Errors, Example, Mention
from spandet.evaluation.report import Report
from spandet.evaluation.scores import macro, score
from spandet.rendering.tables import Table, Tabular
from spandet.rendering.terminal import terminal_tables
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

TEXT = "one two three four five six seven eight nine ten eleven twelve"
WORDS = TEXT.split()


def document(*entities: tuple[int, int, str], name: str | None = None) -> Document:
    found = [Entity(WordSpan(start, end), label) for start, end, label in entities]
    return Document.from_rows([WordRow(WORDS, found)], id=name)


def report(**changes: object) -> Report:
    """A report of nothing, with other values for some fields."""
    return replace(evaluate([], []), **changes)  # type: ignore[arg-type]


def table(of: Tabular, title: str) -> Table:
    return next(one for one in of.tables() if one.title == title)


def test_errors_are_shares_of_their_own_side() -> None:
    errors = Errors({"label": 1, "spurious": 3}, {"label": 2, "missed": 8}, {}, ())
    assert table(report(errors=errors), "Errors by cause").rows == (
        ("label", 1, 0.25, 2, 0.2),
        ("spurious", 3, 0.75, None, None),
        ("missed", None, None, 8, 0.8),
        ("all", 4, None, 10, None),
    )


def test_intervals_have_the_number_of_resamples() -> None:
    own = {"precision": Interval(0.1, 0.2), "recall": Interval(0.3, 0.4), "f1": None}
    got = report(documents=1234, sentences=5678, intervals=own, resamples=1000)
    assert table(got, "Overall").note == (
        "1,234 documents, 5,678 sentences. 95 % intervals of micro: "
        "P 10.00–20.00, R 30.00–40.00 (1,000 resamples of documents)."
    )
    assert table(report(), "Overall").note == "0 documents, 0 sentences."


@pytest.mark.parametrize(("pairs", "shown", "note"), [
    (11, 11, ""), (12, 12, ""), (13, 12, "1 rarer pairs are not shown."),
    (20, 12, "8 rarer pairs are not shown."),
])  # fmt: skip
def test_the_twelve_most_frequent_confusions_are_shown(pairs: int, shown: int, note: str) -> None:
    confusion = {(f"g{number}", "p"): 100 - number for number in range(pairs)}
    got = table(report(errors=Errors({}, {}, confusion, ())), "Right span, wrong label")
    assert got.rows == tuple((f"g{number}", "p", 100 - number) for number in range(shown))
    assert (got.note, got.only) == (note, "text")


def test_the_confusion_matrix_has_gold_down_and_predicted_across() -> None:
    confusion = {("b", "a"): 2, ("a", "c"): 3}
    got = table(
        report(errors=Errors({}, {}, confusion, ())),
        "Label confusion: gold down, predicted across",
    )
    assert got.columns == ("", "a", "b", "c")
    assert got.rows == (("a", None, None, 3), ("b", 2, None, None), ("c", None, None, None))


def test_examples_show_both_sides() -> None:
    one = Example("false positive", "spurious", "d", None, Mention("IL-2", "DNA"))
    got = table(report(errors=Errors({}, {}, {}, (one,))), "Examples")
    assert got.rows == (("false positive: spurious", "d", "–", "IL-2  (DNA)"),)


def test_the_tables_of_a_report() -> None:
    titles = ["Overall", "Labels", "Structure (each side by its own)", "Length in words"]
    titles += ["Exact length in words", "Errors by cause"]
    assert [one.title for one in report().tables()] == titles
    assert [one.bar for one in report().tables()] == [3] * 5 + [None]


def test_labels_are_in_order_of_their_number_then_of_their_names() -> None:
    gold = document((0, 1, "b"), (1, 2, "a"), (2, 3, "c"), (3, 4, "c"))
    assert list(evaluate([gold], [document((4, 5, "d"))]).labels) == ["c", "a", "b", "d"]
    assert list(describe([gold]).labels) == ["c", "a", "b"]


def test_two_documents_by_hand() -> None:
    gold = [document((0, 6, "x"), (1, 3, "y"), (2, 3, "y"), (7, 8, "x")), document((0, 1, "z"))]
    found = [document((0, 6, "x"), (1, 3, "z"), (7, 8, "y")), document((0, 1, "z"), (4, 5, "y"))]
    got = evaluate(gold, found, resamples=0)
    assert got.micro == score(correct=2, predicted=5, gold=5)
    assert got.boundary == score(correct=4, predicted=5, gold=5)
    assert got.labelling == score(correct=2, predicted=4, gold=4)
    assert got.macro == macro(list(got.labels.values()))
    assert dict(got.labels) == {
        "x": score(correct=1, predicted=1, gold=2),
        "y": score(correct=0, predicted=2, gold=2),
        "z": score(correct=1, predicted=2, gold=1),
    }
    assert dict(got.depths) == {
        1: score(correct=2, predicted=4, gold=3),
        2: score(correct=0, predicted=1, gold=1),
        3: score(correct=0, predicted=0, gold=1),
    }
    assert got.errors.false_positives == {"label": 2, "boundary": 0, "crossing": 0, "spurious": 1}
    assert got.errors.false_negatives == {"label": 2, "boundary": 0, "crossing": 0, "missed": 1}


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ((3, 7), "boundary"), ((5, 7), "boundary"), ((4, 6), "boundary"), ((4, 8), "boundary"),
        ((3, 6), "boundary"), ((5, 8), "boundary"), ((3, 8), "boundary"), ((5, 6), "boundary"),
        ((2, 7), "spurious"), ((4, 9), "spurious"), ((2, 6), "crossing"), ((6, 9), "crossing"),
        ((7, 9), "spurious"), ((0, 4), "spurious"),
    ],
)  # fmt: skip
def test_a_boundary_error_is_a_word_off_at_most(other: tuple[int, int], cause: str) -> None:
    got = evaluate([document((4, 7, "x"))], [document((*other, "x"))], resamples=0).errors
    assert {name for name, number in got.false_positives.items() if number} == {cause}
    partner = None if cause == "spurious" else Mention("five six seven", "x")
    example = got.examples[0]
    assert (example.kind, example.cause, example.gold) == ("false positive", cause, partner)
    assert example.predicted == Mention(" ".join(WORDS[slice(*other)]), "x")


def test_an_example_names_the_entity_that_is_the_reason() -> None:
    # Each error has a neighbour before it that is not its reason.
    gold = document((0, 1, "y"), (4, 7, "x"), (9, 12, "x"), name="d")
    found = document((4, 7, "y"), (8, 11, "y"), (9, 11, "x"), name="d")
    got = evaluate([gold], [found], resamples=0).errors.examples
    middle, last = Mention("five six seven", "x"), Mention("ten eleven twelve", "x")
    relabelled, shorter = replace(middle, label="y"), replace(last, text="ten eleven")
    assert [(one.kind, one.cause, one.gold, one.predicted) for one in got] == [
        ("false positive", "label", middle, relabelled),
        ("false positive", "boundary", last, shorter),
        ("false positive", "crossing", last, Mention("nine ten eleven", "y")),
        ("false negative", "label", middle, relabelled),
        ("false negative", "boundary", last, shorter),
        ("false negative", "missed", Mention("one", "y"), None),
    ]


def test_five_examples_of_each_cause_are_kept() -> None:
    gold = [document((0, 1, "x"), name=f"d{number}") for number in range(7)]
    got = evaluate(gold, [replace(one, entities=()) for one in gold], resamples=0).errors
    assert [one.document for one in got.examples] == ["d0", "d1", "d2", "d3", "d4"]
    assert got.false_negatives["missed"] == 7


@pytest.mark.parametrize(
    ("value", "width"), [(-0.5, 0.0), (0.0, 0.0), (0.12345, 12.35), (1.0, 100.0), (1.5, 100.0)]
)
def test_a_bar_on_the_page_is_as_wide_as_its_share(value: float, width: float) -> None:
    class One(Tabular):
        title = "One"

        def tables(self) -> list[Table]:
            return [Table(title="T", columns=("", "n", "F1"), rows=(("x", 2, value),), bar=2)]

    page = One().to_html()
    assert re.findall(r'<rect class="value" width="([^"]*)"', page) == [str(width)]
    assert f"<td>2</td><td>{100 * value:.2f}</td><td><svg" in page
    assert '<th class="words" dir="auto"></th><th>n</th><th>F1</th><th></th>' in page


def lines(*tables: Table, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(terminal_tables("Title", tables))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_names_in_a_terminal_are_cut_after_22_characters() -> None:
    for size, shown in ((21, "a" * 21 + " "), (22, "a" * 22), (23, "a" * 21 + "…")):
        rows = (("a" * size, 1, 0.0),)
        bars = Table(title="Bars", columns=("", "n", "F1"), rows=rows, bar=2)
        short = replace(bars, rows=(("b", 2, None),))
        alone = Table(title="Alone", columns=("", "n"), rows=(("c", 3),))
        width = min(size, 22)
        assert lines(bars, short, alone)[3:] == [
            f" {'':{width}}       n      F1",
            f" {shown.strip():{width}}       1    0.00",
            "",
            "Bars",
            f" {'':{width}}       n      F1",
            f" {'b':{width}}       2",
            "",
            "Alone",
            "         n",
            " c       3",
        ]


def test_a_corpus_by_hand() -> None:
    first = document((0, 6, "x"), (1, 3, "y"), (1, 3, "x"), (1, 3, "z"), (2, 4, "y"), (2, 4, "y"))
    got = describe([first, document((0, 11, "x"), (3, 5, "y"), name="second")])
    assert got.title == "2 documents · 2 sentences · 24 words · 8 entities"
    assert (got.nested, got.crossing_pairs, got.same_span_pairs, got.duplicates) == (8, 3, 3, 1)
    assert (got.depths, got.exact_lengths) == ({1: 2, 2: 6}, {2: 6, 6: 1, 11: 1})
    assert got.lengths == {"1-4": 6, "5-9": 1, "10+": 1}
    assert table(got, "Labels").rows == (("y", 0.5, 4), ("x", 0.375, 3), ("z", 0.125, 1))
    structure = table(got, "Structure")
    assert structure.rows[0] == ("nested (100.00 %)", 8)
    assert (got.sentence_length, got.entity_length) == (12, 29 / 8)
    means = "Mean length in words: sentence 12.0, entity 3.6."
    assert structure.note == f"{means} Longest: 11 words, x, in second: {' '.join(WORDS[:11])}"
    assert table(describe([]), "Structure").note == ""


def test_words_outside_gaps_are_counted() -> None:
    starts = [0, 4, 8, 14, 19]  # of the first five words
    pieces = [CharSpan(starts[0], 3), CharSpan(starts[2], 18), CharSpan(starts[4], starts[4] + 1)]
    entity = Entity.from_fragments(pieces, "x")
    assert describe([Document(TEXT, (entity,))]).exact_lengths == {4: 1}


def test_percentiles_and_shares_by_hand() -> None:
    sums = resampled(Counter({(1, 2): 1}), resamples=3, seed=0)
    assert sums.tolist() == [[1, 2]] * 3
    assert middle(np.arange(201.0)) == Interval(5.0, 195.0)
    none = intervals(Counter({(0, 0, 0): 2}), resamples=3, seed=0)
    assert none == dict.fromkeys(("precision", "recall", "f1"), Interval(0.0, 0.0))


def test_a_table_without_rows_has_its_head() -> None:
    empty = Table(title="Bars", columns=("", "n", "F1"), rows=(), bar=2)
    assert lines(empty) == ["Title", "", "Bars", "        n      F1"]
