"""A sweep measures every value as if the model had been loaded with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spandet.benchmarking.measuring import Timing
from spandet.benchmarking.sweep import Option, SweepResult, choices, sweep
from spandet.benchmarking.sweep_report import SweepReport
from spandet.benchmarking.variants import SweptModel
from spandet.encoding import Encoder
from spandet.errors import ConfigError, UsageError
from spandet.evaluation import Score, evaluate
from spandet.formats import read
from spandet.inference.recognizer import Recognizer
from spandet.text import Document
from spandet.training.data import Split, load
from support.benchmark_toys import toy_folder

OPTIONS = [
    Option("detector.steps", ("1", "3")),
    Option("detector.eval_slots_factor", ("0.5", "2")),
    Option("decoding.threshold", ("0.2", "0.6")),
    Option("encoder.fusion.dropout", ("0.5",)),
]
TIMING = Timing(sentences=8, batch=4, rounds=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_folder(tmp_path_factory.getbasetemp()) / "model"


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return load(read(str(toy_folder(tmp_path_factory.getbasetemp()) / "dev.jsonl")))


@pytest.fixture(scope="module")
def swept(model: Path, dev: Split) -> SweepResult:
    return sweep(SweptModel(model), dev, OPTIONS, timing=TIMING)


def loaded(model: Path, dev: Split, *assignments: str) -> Score:
    recognizer = Recognizer.from_pretrained(model, assignments)
    return evaluate(dev.documents, recognizer.predict(dev.documents), resamples=0).micro


def test_scores_equal_those_of_a_model_loaded_with_the_value(
    swept: SweepResult, model: Path, dev: Split
) -> None:
    assert len(swept.measured) == 8
    for choice, one in swept.measured.items():
        assert loaded(model, dev, *choice) == one.own
        at_tuned = loaded(model, dev, *choice, f"decoding.threshold={one.tuned.threshold!r}")
        assert at_tuned.f1 == one.tuned.f1 >= one.own.f1
    assert swept.measured[()].own.f1 > 0
    assert len({one.own.f1 for one in swept.measured.values()}) > 2


def test_a_value_that_changes_nothing_is_the_unchanged_model(swept: SweepResult) -> None:
    assert swept.same_as_base == {(), ("detector.steps=3",)}
    assert swept.measured[("detector.steps=3",)] is swept.measured[()]


def test_variants_share_the_time_of_the_encoder(swept: SweepResult) -> None:
    shared = {o.encoder_ms for c, o in swept.measured.items() if "encoder" not in "".join(c)}
    assert len(shared) == 1
    assert all(
        one.ms > one.encoder_ms > 0 and one.detector_ms > 0 for one in swept.measured.values()
    )
    assert swept.timed == 8


def test_the_model_is_loaded_once_and_every_batch_is_encoded_once(
    model: Path, dev: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = {"loads": 0, "batches": 0}
    load_once, encode = Recognizer.from_pretrained.__func__, Encoder.forward  # type: ignore[attr-defined]

    def counted_load(*arguments: Any) -> Recognizer:
        count["loads"] += 1
        return load_once(Recognizer, *arguments)  # type: ignore[no-any-return]

    def counted_encode(self: Encoder, batch: Any) -> Any:
        count["batches"] += 1
        return encode(self, batch)

    monkeypatch.setattr(Recognizer, "from_pretrained", counted_load)
    monkeypatch.setattr(Encoder, "forward", counted_encode)
    own = SweptModel(model)
    variants = [own.variant([f"detector.steps={steps}"]) for steps in (1, 2, 5)]
    for variant in variants:
        list(variant.predict(dev.documents))
    assert count == {"loads": 1, "batches": len(own.encoded)}
    ours, theirs = (dict(one.modules().named_parameters()) for one in (own.base, variants[0]))
    assert all(ours[name].data_ptr() == theirs[name].data_ptr() for name in ours)


def test_each_option_by_itself_or_all_combinations() -> None:
    options = [Option("a.x", ("1", "2")), Option("a.y", ("3", "4"))]
    apart = [(), ("a.x=1",), ("a.x=2",), ("a.y=3",), ("a.y=4",)]
    assert choices(options, grid=False) == apart
    pairs = [(f"a.x={x}", f"a.y={y}") for x in "12" for y in "34"]
    assert choices(options, grid=True) == [(), *pairs]


def test_a_grid_is_measured_and_shown(model: Path, dev: Split) -> None:
    swept = sweep(SweptModel(model), dev, OPTIONS[:2], grid=True, timing=TIMING)
    (grid,) = SweepReport(swept).tables()
    assert grid.title == "detector.steps × detector.eval_slots_factor"
    assert [row[0] for row in grid.rows] == [
        "unchanged",
        *[f"{steps} × {factor}" for steps in ("1", "3") for factor in ("0.5", "2")],
    ]
    assert [plot.count("<polyline") for plot in grid.plots] == [2, 2]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("detector.steps=1,2, 5", ("1", "2", "5")),
        ("detector.steps=1,1", ("1",)),
        ("detector.eval_lengths=[1,2],[1,2,3]", ("[1,2]", "[1,2,3]")),
        ("decoding.merge=max,noisy-or", ("max", "noisy-or")),
        ("a.b=\"x,y\",'[',{c=[1,2],d=3}", ('"x,y"', "'['", "{c=[1,2],d=3}")),
    ],
)
def test_values_are_separated_by_commas(text: str, values: tuple[str, ...]) -> None:
    assert Option.parse(text) == Option(text.partition("=")[0], values)


@pytest.mark.parametrize("text", ["detector.steps", "steps=1,2", "detector.steps=1,,2", "a.b="])
def test_an_invalid_option_is_an_error_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match=r"--set .* expected section\.key=value,value,…"):
        Option.parse(text)


def mistakes() -> Iterator[tuple[type[Exception], str, list[Option]]]:
    yield UsageError, "given twice", [OPTIONS[0], OPTIONS[0]]
    yield (
        UsageError,
        r"detector\.dim=32: the weights of .* do not fit",
        [Option("detector.dim", ("32",))],
    )
    yield ConfigError, "did you mean steps", [Option("detector.step", ("1",))]
    yield ConfigError, "there is no section training", [Option("training.lr", ("1",))]


@pytest.mark.parametrize(("error", "what", "options"), list(mistakes()))
def test_a_mistake_is_an_error_before_anything_is_measured(
    error: type[Exception], what: str, options: list[Option], model: Path, dev: Split
) -> None:
    with pytest.raises(error, match=what):
        sweep(SweptModel(model), dev, options, timing=TIMING)


def test_data_without_entities_are_an_error(model: Path) -> None:
    with pytest.raises(UsageError, match="documents in memory has no entities"):
        sweep(SweptModel(model), load([Document("Nothing here.")]), OPTIONS)


def test_tables_and_json_have_the_same_values(swept: SweepResult) -> None:
    report = SweepReport(swept)
    plain = report.to_json()
    by_choice = {tuple(row["set"]): row for row in plain["rows"]}
    assert by_choice.keys() == swept.measured.keys()
    for grid, option in zip(report.tables(), OPTIONS, strict=True):
        for row in grid.rows:
            value = str(row[0]).removesuffix(" *")
            choice = () if value == "unchanged" else (f"{option.key}={value}",)
            one = by_choice[choice]
            cells = dict(zip(grid.columns[1:8], row[1:8], strict=True))
            assert cells["F1"] == f"{100 * one['own_threshold']['f1']:.2f}"
            assert cells["tuned\nF1"] == f"{100 * one['tuned_threshold']['f1']:.2f}"
            assert row[9] == f"{one['ms_per_sentence']:.2f}"
        assert any(str(row[0]) == "unchanged" or str(row[0]).endswith(" *") for row in grid.rows)
        assert f"### {option.key}" in report.to_markdown()
    page = report.to_html()
    assert page.count("<svg") == 2 * len(OPTIONS)
    assert "dev.jsonl" in page
