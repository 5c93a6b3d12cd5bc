from __future__ import annotations

import json
import re
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from spandet.evaluation import Comparison, Report, Statistics, compare, describe, evaluate
from spandet.text import CharSpan, Document, Entity, WordRow, WordSpan

OVERALL = ("micro", "macro", "boundary", "labelling")
SCORES = (*OVERALL, "nested", "nested_same_label", "nested_other_label", "flat")
GROUPS = ("labels", "depths", "lengths", "exact_lengths")


def sentence(*entities: tuple[int, int, str], name: str = "d1") -> Document:
    text = "the human NF-kappa B binding site of the IL-2 gene was mutated ."
    words = text.split()
    found = [Entity(WordSpan(start, end), label) for start, end, label in entities]
    return Document.from_rows([WordRow(words, found)], id=name)


GOLD = sentence((1, 6, "DNA"), (2, 4, "protein"), (8, 10, "DNA"), (8, 9, "protein"))
PREDICTED = sentence(
    (1, 6, "DNA"),  # right
    (2, 4, "DNA"),  # label
    (8, 11, "DNA"),  # boundary: one word too long
    (5, 9, "RNA"),  # crossing
    (12, 13, "protein"),  # spurious
)


@pytest.fixture
def report() -> Report:
    return evaluate([GOLD, sentence(name="d2")], [PREDICTED, sentence(name="d2")], resamples=20)


def test_a_small_document_by_hand(report: Report) -> None:
    assert (report.micro.correct, report.micro.predicted, report.micro.gold) == (1, 5, 4)
    assert (report.boundary.correct, report.boundary.predicted, report.boundary.gold) == (2, 5, 4)
    assert (report.labelling.correct, report.labelling.predicted, report.labelling.gold) == (
        1,
        2,
        2,
    )
    assert {name: one.gold for name, one in report.labels.items()} == {
        "DNA": 2,
        "protein": 2,
        "RNA": 0,
    }
    assert report.macro.precision == pytest.approx((1 / 3 + 0 + 0) / 3)
    assert report.macro.recall == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert {length: one.gold for length, one in report.lengths.items()} == {
        "1-4": 3,
        "5-9": 1,
        "10+": 0,
    }
    assert report.errors.false_positives == {
        "label": 1,
        "boundary": 1,
        "crossing": 1,
        "spurious": 1,
    }
    assert report.errors.false_negatives == {"label": 1, "boundary": 1, "crossing": 0, "missed": 1}
    assert report.errors.confusion == {("protein", "DNA"): 1}


def test_each_side_is_grouped_by_its_own_structure() -> None:
    inner, outer = (2, 4, "protein"), (1, 6, "DNA")
    report = evaluate([sentence(inner)], [sentence(inner, outer)], resamples=0)
    # Gold has one flat entity, and it was found; both predictions are nested, and one is right.
    assert (report.flat.gold, report.flat.found, report.flat.predicted) == (1, 1, 0)
    assert (report.nested.gold, report.nested.correct, report.nested.predicted) == (0, 1, 2)
    assert (report.nested.precision, report.nested.recall, report.nested.f1) == (0.5, 0, 0)


def test_examples_show_both_sides_and_are_few(report: Report) -> None:
    shown = [example.to_json() for example in report.errors.examples]
    assert {
        "kind": "false positive",
        "cause": "boundary",
        "document": "d1",
        "gold": {"text": "IL-2 gene", "label": "DNA"},
        "predicted": {"text": "IL-2 gene was", "label": "DNA"},
    } in shown
    assert {
        "kind": "false negative",
        "cause": "missed",
        "document": "d1",
        "gold": {"text": "IL-2", "label": "protein"},
        "predicted": None,
    } in shown
    often = evaluate([GOLD] * 20, [sentence()] * 20, resamples=0)
    assert len(often.errors.examples) == 5


def test_examples_read_well_in_another_spacing() -> None:
    text = GOLD.text.replace(" .", ".")
    predicted = Document(text, (Entity(CharSpan(0, 9), "DNA"),), id="d1")
    report = evaluate([GOLD], [predicted], resamples=0)
    assert "the human" in {one.predicted.text for one in report.errors.examples if one.predicted}


def test_json_has_every_key_and_only_plain_values(report: Report) -> None:
    plain = report.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert {*SCORES, *GROUPS, "errors", "intervals", "documents", "sentences"} == plain.keys()
    for score in [plain[name] for name in SCORES] + [
        score for name in GROUPS for score in plain[name].values()
    ]:
        assert {"precision", "recall", "f1", "support", "correct", "predicted", "gold"} <= {*score}
        assert all(0 <= score[name] <= 1 for name in ("precision", "recall", "f1"))
        assert score["support"] == score["gold"]
    assert [*plain["lengths"]] == ["1-4", "5-9", "10+"]
    assert plain["errors"]["confusion"] == {"protein": {"DNA": 1}}
    assert all(len(interval) == 2 for interval in plain["intervals"].values())


def test_nothing_to_score_is_zero_everywhere() -> None:
    plain = evaluate([], []).to_json()
    assert plain["documents"] == 0
    assert all(plain[name]["f1"] == 0.0 for name in SCORES)
    assert plain["labels"] == {}


def odd() -> Document:
    label = "<b>|[red]x[/red] & a label that is far too long for any table"
    return Document("a <script> c", (Entity(CharSpan(2, 10), label),), id="<id>")


def results() -> list[Report | Comparison | Statistics]:
    gold, predicted = [GOLD, odd()], [PREDICTED, Document(odd().text, id="<id>")]
    return [
        evaluate(gold, predicted, resamples=10),
        compare(gold, predicted, gold, resamples=10),
        describe(gold),
        evaluate([], []),
        describe([]),
    ]


@pytest.mark.parametrize("result", results())
def test_the_terminal_report_fits_80_columns_without_colour(
    result: Report | Comparison | Statistics,
) -> None:
    stream = StringIO()
    Console(file=stream, width=80, color_system=None).print(result)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert result.title.split(" · ", maxsplit=1)[0] in text


def test_the_terminal_report_takes_labels_literally() -> None:
    stream = StringIO()
    Console(file=stream, width=80, color_system=None).print(results()[0])
    assert "<b>|[red]x[/red] & a …" in stream.getvalue()


def test_surrogates_and_terminal_commands_are_replaced() -> None:
    label = "\ud83d\x1b[2J\nnext"
    gold = [Document("a", (Entity(CharSpan(0, 1), label),))]
    for result in (evaluate(gold, [Document("a")]), describe(gold)):
        stream = StringIO()
        Console(file=stream, width=80, color_system=None).print(result)
        for text in (stream.getvalue(), result.to_markdown(), result.to_html()):
            assert "\ufffd\ufffd[2J next" in text
            assert "\x1b" not in text
            text.encode("utf-8")


def test_percentages_have_two_decimals(report: Report) -> None:
    stream = StringIO()
    Console(file=stream, width=80, color_system=None).print(report)
    assert re.search(r"micro +20\.00 +25\.00 +22\.22 +█+\S* +4 +5", stream.getvalue())
    assert "| micro | 20.00 | 25.00 | 22.22 | 4 | 5 |" in report.to_markdown()
    assert str(report) == report.to_markdown()


@pytest.mark.parametrize("result", results())
def test_markdown_tables_have_as_many_cells_as_columns(
    result: Report | Comparison | Statistics,
) -> None:
    blocks = [block for block in result.to_markdown().split("\n\n") if block.startswith("|")]
    assert blocks
    for block in blocks:
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(cells) == 1


@pytest.mark.parametrize("result", results())
def test_the_page_is_self_contained_and_escaped(result: Report | Comparison | Statistics) -> None:
    html = result.to_html()
    assert html.startswith("<!doctype html>")
    assert "<b>" not in html
    assert "<script" not in html
    assert not re.search(r"""(src|href)=["'](?!data:)|https?:|@import""", html)


def test_the_page_has_bars_and_details(report: Report) -> None:
    html = report.to_html()
    assert '<rect class="value" width="22.22"' in html
    assert "Exact length in words" in html
    assert "IL-2 gene was" in html


def test_importing_and_plain_scoring_stay_light() -> None:
    code = (
        "import sys; from spandet.evaluation import evaluate; evaluate([], []).to_json();"
        "print([name for name in ('numpy', 'rich', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
