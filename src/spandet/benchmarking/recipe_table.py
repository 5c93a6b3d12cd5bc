"""Trains the recipes of a table one after another and reads their results."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen
from pydantic import BaseModel

from spandet.benchmarking.cost import predict_speed
from spandet.benchmarking.measuring import Timing, peak_memory, reset_peak_memory, torch_threads
from spandet.config import Settings, read_toml
from spandet.errors import ConfigError, SpandetError, UsageError
from spandet.formats.target import Target
from spandet.inference.recognizer import Recognizer
from spandet.training import Split, TrainingInterrupted, train
from spandet.training.checkpoint import has_checkpoint
from spandet.training.recipe import Recipe
from spandet.training.run import RECIPE
from spandet.training.summary import RUN

MEASURED = "measured.json"

_PREDICT_TIMING = Timing(rounds=2)
_VARIANTS = "variants"


class VariantSettings(Settings):
    """One row of a table."""

    name: Annotated[str, MinLen(1)]
    """The name of the row."""
    base: str = ""
    """A recipe instead of the base of the list."""
    set: tuple[str, ...] = ()
    """Assignments such as `detector.use_filter=false`; empty for the unchanged base."""


class RecipeListSettings(Settings):
    """A list of recipes: a base and what each variant changes, in one TOML file."""

    about: str
    """The title of the table."""
    base: str
    """A recipe; its path is relative to the folder of the list."""
    set: tuple[str, ...] = ()
    """Assignments for all variants."""
    variants: Annotated[tuple[VariantSettings, ...], MinLen(1)]
    """The rows; all others are compared with the first."""


@dataclass(frozen=True)
class Entry:
    """A recipe to train."""

    name: str
    path: Path
    """The file of the recipe or of the base."""
    set: tuple[str, ...] = ()

    def recipe(self, more: Iterable[str] = ()) -> Recipe:
        """The recipe with its own assignments and some more.

        Raises:
            ConfigError: the recipe is invalid.
        """
        try:
            return Recipe.load(self.path, [*self.set, *more])
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None

    @property
    def folder(self) -> str:
        """The name as the name of a folder."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-.") or "recipe"


@dataclass(frozen=True)
class RecipeList:
    """The recipes of one table."""

    name: str
    """The name of the file, without its folder and suffix."""
    about: str
    entries: tuple[Entry, ...]


def read_lists(paths: Sequence[Path]) -> list[RecipeList]:
    """Read lists of recipes; single recipes form one more list.

    Raises:
        SpandetError: a file cannot be read, or is neither a recipe nor a list.
    """
    texts = {path: _text(path) for path in paths}
    values = {path: read_toml(text, name=str(path)) for path, text in texts.items()}
    plain = tuple(
        Entry("/".join(path.with_suffix("").parts[-2:]), path)
        for path in paths
        if _VARIANTS not in values[path]
    )
    lists = [_list(path, values[path]) for path in paths if _VARIANTS in values[path]]
    found = [RecipeList("recipes", "Recipes", plain), *lists] if plain else lists
    _check_folders([own.name for own in found], "lists")
    for own in found:
        _check_folders([entry.folder for entry in own.entries], f"variants of {own.name}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None


def _list(path: Path, values: dict[str, object]) -> RecipeList:
    listed = RecipeListSettings.build(values, where=path.name)
    entries = tuple(
        Entry(row.name, path.parent / (row.base or listed.base), (*listed.set, *row.set))
        for row in listed.variants
    )
    for entry in entries:
        if not entry.path.is_file():
            raise ConfigError(f"[{path.name}] base: there is no recipe {entry.path}")
    return RecipeList(path.stem, listed.about, entries)


def _check_folders(names: Sequence[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two {what} would share the folder {twice[0]}; rename one of them")


class Measured(BaseModel):
    """Measurements that are not part of run.json; stored in measured.json."""

    peak_memory_bytes: int | None = None
    """The highest peak of the process over all sessions of the run."""
    predict_sentences_per_second: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of one training run."""

    seed: int
    precision: float
    recall: float
    f1: float
    """Score of the best epoch on dev, with the threshold tuned on dev."""
    best_epoch: int
    seconds: float
    """Wall-clock time of training, evaluations on dev included."""
    sentences_per_second: float
    """In training."""
    parameters: int
    measured: Measured


@dataclass
class Row:
    """A recipe and the results of its runs so far."""

    entry: Entry
    runs: list[RunResult] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    """Error messages, by seed."""

    def values(self, of: Callable[[RunResult], float | None]) -> list[float]:
        """One figure of each run that has it."""
        return [value for value in map(of, self.runs) if value is not None]


@dataclass(frozen=True)
class PlannedRun:
    """One run of the table."""

    list: str
    row: Row
    seed: int

    def __str__(self) -> str:
        return f"{self.list}: {self.row.entry.name}, seed {self.seed}"


@dataclass(frozen=True)
class RecipeTable:
    """The content of a table."""

    lists: tuple[RecipeList, ...]
    rows: dict[str, list[Row]]
    """The rows of each list, in its order."""
    train_data: Split
    dev_data: Split
    seeds: tuple[int, ...]
    overrides: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        lists: Sequence[RecipeList],
        train: Split,
        dev: Split,
        *,
        seeds: Sequence[int],
        overrides: Sequence[str] = (),
    ) -> RecipeTable:
        """An empty table.

        Raises:
            ConfigError: a recipe is invalid; nothing has been trained yet.
        """
        for own in lists:
            for entry in own.entries:
                entry.recipe(overrides)
        rows = {own.name: [Row(entry) for entry in own.entries] for own in lists}
        return cls(tuple(lists), rows, train, dev, tuple(seeds), tuple(overrides))

    def planned_runs(self) -> list[PlannedRun]:
        """All runs, ordered by seed, so that rows can be compared early."""
        return [
            PlannedRun(own.name, row, seed)
            for seed in self.seeds
            for own in self.lists
            for row in self.rows[own.name]
        ]

    def train(self, run: PlannedRun, out: Path, *, progress: bool = True) -> None:
        """Train a run unless it is complete, and add its result, or its error, to the table.

        Args:
            run: One of `planned_runs`.
            out: A folder for all runs. A complete run in it is not repeated, an interrupted one is
                resumed.
            progress: Show the progress of training.

        Raises:
            TrainingInterrupted: training received SIGINT or SIGTERM.
        """
        recipe = run.row.entry.recipe([*self.overrides, f"training.seed={run.seed}"])
        folder = out / run.list / run.row.entry.folder / f"seed-{run.seed}"
        try:
            run.row.runs.append(self._trained(recipe, folder, progress=progress))
        except TrainingInterrupted:
            raise
        except SpandetError as error:
            run.row.failed[run.seed] = str(error)

    def _trained(self, recipe: Recipe, folder: Path, *, progress: bool) -> RunResult:
        measured, is_complete = _measured(folder), _is_complete(folder)
        reset_peak_memory()
        try:
            recognizer = train(
                recipe,
                self.train_data,
                self.dev_data,
                out=folder,
                resume=(folder / RECIPE).exists(),
                progress=progress and not is_complete,
            )
        finally:
            if not is_complete and folder.is_dir():
                peaks = measured.peak_memory_bytes, peak_memory()
                known = (size for size in peaks if size is not None)
                measured.peak_memory_bytes = max(known, default=None)
                _write(folder, measured)
        if measured.predict_sentences_per_second is None:
            measured.predict_sentences_per_second = self._predict_speed(recognizer)
            _write(folder, measured)
        return _read(folder, recipe.training.seed, measured)

    def _predict_speed(self, recognizer: Recognizer) -> float:
        with torch_threads(_PREDICT_TIMING.threads):
            return predict_speed(recognizer, self.dev_data.documents, _PREDICT_TIMING).per_second


def _is_complete(folder: Path) -> bool:
    return (folder / RUN).exists() and not has_checkpoint(folder)


def _measured(folder: Path) -> Measured:
    path = folder / MEASURED
    return Measured.model_validate_json(path.read_text()) if path.exists() else Measured()


def _write(folder: Path, measured: Measured) -> None:
    with Target(str(folder / MEASURED)).text() as out:
        out.write(measured.model_dump_json(indent=2) + "\n")


def _read(folder: Path, seed: int, measured: Measured) -> RunResult:
    run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    score = run["dev"]["micro"]
    # The harmonic mean, because every epoch has the same number of sentences.
    speed = statistics.harmonic_mean([epoch["sentences_per_second"] for epoch in run["history"]])
    return RunResult(
        seed=seed,
        precision=score["precision"],
        recall=score["recall"],
        f1=score["f1"],
        best_epoch=run["best_epoch"],
        seconds=run["seconds"],
        sentences_per_second=speed,
        parameters=run["parameters"],
        measured=measured,
    )
