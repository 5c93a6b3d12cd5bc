"""Tables of recipes: resuming, and figures that equal those of the runs."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from spandet.benchmarking import recipe_table as tables
from spandet.benchmarking.recipe_table import RecipeTable, read_lists
from spandet.benchmarking.recipe_table_report import RecipeTableReport, deviation, mean
from spandet.detectors import DETECTORS
from spandet.errors import ConfigError, UsageError
from spandet.training import Recipe, TrainingError, TrainingInterrupted, load, train
from support.benchmark_toys import RECIPE, documents

PROJECT = Path(__file__).parents[3]
LISTS = sorted((PROJECT / "recipes" / "ablations").glob("*.toml"))
LIST = """
about = "A toy"
base = "toy.toml"
set = ["training.epochs=1"]

[[variants]]
name = "full"

[[variants]]
name = "One step!"
set = ["detector.steps=1"]
"""


@pytest.fixture
def toy_list(tmp_path: Path) -> Path:
    (tmp_path / "toy.toml").write_text(RECIPE.to_toml())
    path = tmp_path / "toys.toml"
    path.write_text(LIST)
    return path


def toy_table(path: Path, *, seeds: tuple[int, ...] = (0, 1)) -> RecipeTable:
    data = load(documents(12, seed=1)), load(documents(6, seed=2))
    return RecipeTable.of(read_lists([path]), *data, seeds=seeds)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_variant_of_every_shipped_list_resolves(path: Path) -> None:
    (own,) = read_lists([path])
    first, *others = [entry.recipe() for entry in own.entries]
    assert others
    assert all(recipe != first for recipe in others)
    assert len({json.dumps(recipe.to_values()) for recipe in others}) == len(others)
    command = path.read_text().splitlines()[0]
    assert command.startswith(f"# spandet benchmark table {path.relative_to(PROJECT)} --train ")
    assert own.about
    for entry, recipe in zip(own.entries, [first, *others], strict=True):
        presets = DETECTORS[recipe.to_values()["detector"]["name"]].presets
        entry.recipe([*(["detector.preset=paper"] if presets else []), "training.seed=1"])


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_list_has_the_baseline_once(path: Path) -> None:
    (own,) = read_lists([path])
    names = [entry.recipe().to_values()["detector"]["name"] for entry in own.entries]
    assert names.count("biaffine") == 1


PAPERS = {
    "locate-and-label": {  # table 3
        "full",
        "without regressor",
        "without filter",
        "without regressor and filter",
        "without Soft-NMS",
        "without soft examples",
    },
    "proposer-regressor": {  # table 6
        "full",
        "without backward block",
        "without spatial modulation",
        "without gated update: feed-forward",
        "without gated update: residual",
        "without category embedding",
        "without locations iteration",
        "without logarithms iteration",
    },
    "proposer-regressor-sizes": {  # table 7, figures 5 and 6
        "kernels 2 2, 3 layers, 8 heads",
        "no kernels",
        *(f"kernels {sizes}" for sizes in ("2", "2 2 2", "2 2 2 2", "2 3", "2 3 2")),
        "kernels 2 3, 1 layer",
        *(f"kernels 2 3, {layers} layers" for layers in (2, 4, 5, 6)),
        "kernels 2 3, 1 head",
        *(f"kernels 2 3, {heads} heads" for heads in (2, 4, 12, 16)),
    },
    "boundary-diffusion": {  # tables 4 (span encoder), 5 and 6
        "full: cosine, T = 1000, random, K = 60",
        "without self-attention",
        "without cross-attention",
        "without both",
        *(f"cosine, T = {levels}" for levels in (1500, 2000)),
        *(f"linear, T = {levels}" for levels in (1000, 1500, 2000)),
        *(f"random, K = {slots}" for slots in (120, 150)),
        *(f"repeat, K = {slots}" for slots in (60, 120, 150)),
    },
    "boundary-diffusion-encoders": {"minilm", "bert-large-cased", "roberta-large"},  # table 4
}


@pytest.mark.parametrize("name", PAPERS)
def test_a_list_has_every_row_of_its_paper_and_starts_from_preset_paper(name: str) -> None:
    (own,) = read_lists([PROJECT / "recipes" / "ablations" / f"{name}.toml"])
    *rows, baseline = own.entries
    assert {entry.name for entry in rows} == PAPERS[name]
    assert baseline.name == "biaffine, the baseline"
    base = rows[0].recipe()
    transformer = base.model.encoder.transformer
    assert transformer is not None
    assert (base.preset, transformer.name) == ("paper", "minilm")
    assert {entry.recipe().preset for entry in rows} == {"paper"}
    method = base.to_values()["detector"]["name"]
    preset = {**DETECTORS[method].presets["paper"]["detector"], "preset": "paper"}
    published = DETECTORS[method].settings.build(preset, where="detector")
    assert base.to_values()["detector"] == published.model_dump(mode="json")


CHANGED: dict[str, dict[str, Any]] = {
    "without self-attention": {"self_attention": False},
    "without cross-attention": {"cross_attention": False},
    "without both": {"self_attention": False, "cross_attention": False},
    "cosine": {"schedule": "cosine"},
    "linear": {"schedule": "linear"},
    "random": {"expansion": "random"},
    "repeat": {"expansion": "repeat"},
}
NUMBERS = {"T": "levels", "K": "slots"}
"""The settings that the names of the rows describe."""


def changes_of(name: str) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for part in name.removeprefix("full: ").split(", "):
        key, _, number = part.partition(" = ")
        changes |= {NUMBERS[key]: int(number)} if number else CHANGED[key]
    return changes


def test_ablations_of_boundary_diffusion_change_only_what_they_name() -> None:
    (own,) = read_lists([PROJECT / "recipes" / "ablations" / "boundary-diffusion.toml"])
    first, *others = [entry for entry in own.entries if not entry.name.startswith("biaffine")]
    row, base = DETECTORS["boundary-diffusion"], first.recipe().to_values()
    values = {**row.presets["paper"]["detector"], "preset": "paper"}
    preset = row.settings.build(values, where="detector")
    assert base["detector"] == preset.model_dump(mode="json")
    assert base["detector"].items() >= changes_of(first.name).items()
    for entry in others:
        changes = changes_of(entry.name)
        assert entry.recipe().to_values() == {**base, "detector": {**base["detector"], **changes}}


def test_the_list_of_detectors_is_their_recipes_on_genia() -> None:
    (own,) = read_lists([PROJECT / "recipes" / "ablations" / "detectors.toml"])
    assert own.entries[0].name == "biaffine"
    for entry in own.entries:
        shipped = PROJECT / "recipes" / "genia" / f"{entry.name}-minilm.toml"
        assert entry.recipe() == Recipe.load(shipped)


def test_a_list_has_a_base_and_what_changes(toy_list: Path) -> None:
    (own,) = read_lists([toy_list])
    assert [entry.name for entry in own.entries] == ["full", "One step!"]
    assert [entry.folder for entry in own.entries] == ["full", "one-step"]
    base = RECIPE.changed(["training.epochs=1"])
    assert own.entries[0].recipe() == base
    assert own.entries[1].recipe() == base.changed(["detector.steps=1"])
    assert own.entries[1].recipe(["detector.steps=2"]) == base.changed(["detector.steps=2"])


def test_a_row_may_have_its_own_base(toy_list: Path) -> None:
    other = RECIPE.changed(["training.seed=3"])
    toy_list.with_name("other.toml").write_text(other.to_toml())
    toy_list.write_text(LIST.replace('One step!"', 'One step!"\nbase = "other.toml"'))
    (own,) = read_lists([toy_list])
    assert own.entries[0].recipe() == RECIPE.changed(["training.epochs=1"])
    assert own.entries[1].recipe() == other.changed(["training.epochs=1", "detector.steps=1"])


def test_recipes_and_lists_may_be_mixed(toy_list: Path) -> None:
    plain = toy_list.with_name("toy.toml")
    recipes, own = read_lists([plain, toy_list])
    assert [entry.name for entry in recipes.entries] == [f"{toy_list.parent.name}/toy"]
    assert recipes.entries[0].recipe() == Recipe.load(plain)
    assert own.name == "toys"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            ('name = "One step!"', 'name = "FULL"'),
            "two variants of toys would share the folder full",
        ),
        (('base = "toy.toml"', 'base = "other.toml"'), "base: there is no recipe .*other.toml"),
        (('name = "full"', 'name = "full"\nbase = "x.toml"'), "base: there is no recipe .*x.toml"),
        (("[[variants]]", "[[variant]]"), "a recipe has no section"),
        (('about = "A toy"', 'abuot = "A toy"'), "toys.toml.* has no setting abuot; did you mean"),
        (("detector.steps=1", "detector.step=1"), "One step!: .*did you mean steps"),
    ],
)
def test_a_mistake_in_a_list_is_an_error_before_training(
    change: tuple[str, str], what: str, toy_list: Path
) -> None:
    toy_list.write_text(LIST.replace(*change))
    with pytest.raises(ConfigError, match=what):
        toy_table(toy_list)
    with pytest.raises(UsageError, match="cannot read"):
        read_lists([toy_list.with_name("nowhere.toml")])


@pytest.mark.slow
def test_an_interrupted_table_is_resumed_without_repeating_runs(
    toy_list: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []

    def interrupted(recipe: Recipe, *given: Any, **more: Any) -> Any:
        if len(calls) == 2:
            raise TrainingInterrupted("stopped in epoch 1", 2)
        calls.append(more["out"])
        return train(recipe, *given, **more)

    monkeypatch.setattr(tables, "train", interrupted)
    out, table = tmp_path / "out", toy_table(toy_list)
    jobs = table.planned_runs()
    assert [str(job) for job in jobs] == [
        f"toys: {name}, seed {seed}" for seed in (0, 1) for name in ("full", "One step!")
    ]
    with pytest.raises(TrainingInterrupted):
        for job in jobs:
            table.train(job, out, progress=False)
    assert [len(row.runs) for row in table.rows["toys"]] == [1, 1]
    done = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}

    monkeypatch.setattr(tables, "train", train)
    again = toy_table(toy_list)
    for job in again.planned_runs():
        again.train(job, out, progress=False)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    for row, before in zip(again.rows["toys"], table.rows["toys"], strict=True):
        assert row.runs[0] == before.runs[0]
        assert [run.seed for run in row.runs] == [0, 1]
        for run in row.runs:
            folder = out / "toys" / row.entry.folder / f"seed-{run.seed}"
            changes = json.loads((folder / "run.json").read_text())
            assert changes["identity"]["training"]["seed"] == run.seed
            assert run.f1 == changes["dev"]["micro"]["f1"]
            assert run.measured.peak_memory_bytes is None or run.measured.peak_memory_bytes > 10**7
            assert (run.measured.predict_sentences_per_second or 0) > 0
    check_report(RecipeTableReport(again))


def check_report(report: RecipeTableReport) -> None:
    """The table has mean and deviation of the results of the runs."""
    scores, settings = report.tables()
    (own,) = report.to_json()["lists"]
    for shown, plain in zip(scores.rows, own["rows"], strict=True):
        f1 = [100 * run["f1"] for run in plain["runs"]]
        assert shown[1] == f"{statistics.mean(f1):.2f}±{statistics.stdev(f1):.2f}"
        assert plain["mean"]["f1"] == pytest.approx(statistics.mean(f1) / 100)
        assert shown[-1] == "2/2"
    assert scores.rows[0][2] == "+0.00"
    assert settings.rows[1] == ("One step!", "training.epochs=1, detector.steps=1")
    assert [plot.count("<circle") for plot in scores.plots] == [2, 2]
    assert "A toy" in report.to_html()
    assert "| One step! |" in report.to_markdown()


def test_a_failed_run_does_not_stop_the_others(
    toy_list: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(recipe: Recipe, *given: Any, **more: Any) -> Any:
        raise TrainingError(f"the loss is not a number with {recipe.training.seed}")

    monkeypatch.setattr(tables, "train", failing)
    table = toy_table(toy_list, seeds=(3,))
    for job in table.planned_runs():
        table.train(job, tmp_path / "out", progress=False)
    (scores, _), rows = RecipeTableReport(table).tables(), table.rows["toys"]
    assert [row.failed for row in rows] == 2 * [{3: "the loss is not a number with 3"}]
    assert "full, seed 3: the loss is not a number with 3" in scores.note
    assert scores.rows[0] == ("full", *[""] * 8, "0/1")


def test_one_value_has_no_deviation() -> None:
    assert (mean([]), deviation([])) == (None, None)
    assert (mean([2.0]), deviation([2.0])) == (2.0, None)
    assert mean([1.0, 3.0]) == 2.0
    assert deviation([1.0, 3.0]) == pytest.approx(2**0.5)
