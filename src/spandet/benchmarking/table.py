"""Trains the recipes of a table one after another, and remembers what each has given."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from spandet.benchmarking.clock import Timing, threads
from spandet.benchmarking.inference import predict_pace
from spandet.benchmarking.memory import forget_peak, peak_bytes
from spandet.benchmarking.recipe_lists import Entry, RecipeList
from spandet.errors import SpandetError
from spandet.formats.target import Target
from spandet.inference.recognizer import Recognizer
from spandet.training import Split, TrainingInterrupted, train
from spandet.training.checkpoint import has_checkpoint
from spandet.training.recipe import Recipe
from spandet.training.run import RECIPE
from spandet.training.summary import RUN

MEASURED = "measured.json"

_PACE = Timing(rounds=2)


class Beside(BaseModel):
    """What a run does not write down itself."""

    peak_memory_bytes: int | None = None
    """Of the process, in the hungriest session of the run."""
    predict_sentences_per_second: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What one run has given."""

    seed: int
    precision: float
    recall: float
    f1: float
    """On dev, of the best epoch, with the threshold tuned there."""
    best_epoch: int
    seconds: float
    """Of training, dev after each epoch included."""
    sentences_per_second: float
    """In training."""
    parameters: int
    beside: Beside


@dataclass
class Row:
    """A recipe, and what its runs have given so far."""

    entry: Entry
    runs: list[Trained] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    """By seed, why there is no run."""

    def values(self, of: Callable[[Trained], float | None]) -> list[float]:
        """One number of each run that has it."""
        return [value for value in map(of, self.runs) if value is not None]


@dataclass(frozen=True)
class Job:
    """One run of the table."""

    list: str
    row: Row
    seed: int

    def __str__(self) -> str:
        return f"{self.list}: {self.row.entry.name}, seed {self.seed}"


@dataclass(frozen=True)
class TableOfRuns:
    """Everything that a table is made from."""

    lists: tuple[RecipeList, ...]
    rows: dict[str, list[Row]]
    """By list, in its order."""
    train: Split
    dev: Split
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
    ) -> TableOfRuns:
        """An empty table.

        Raises:
            ConfigError: a recipe is not right; nothing has been trained yet.
        """
        for own in lists:
            for entry in own.entries:
                entry.recipe(overrides)
        rows = {own.name: [Row(entry) for entry in own.entries] for own in lists}
        return cls(tuple(lists), rows, train, dev, tuple(seeds), tuple(overrides))

    def jobs(self) -> list[Job]:
        """All runs; seed by seed, so that rows can be compared early."""
        return [
            Job(own.name, row, seed)
            for seed in self.seeds
            for own in self.lists
            for row in self.rows[own.name]
        ]

    def run(self, job: Job, out: Path, *, progress: bool = True) -> None:
        """Train what a job asks for, as far as that has not been done, and note what it gave.

        A run that cannot go on is noted as well: the others may.

        Args:
            job: One of `jobs`.
            out: A folder for all runs. A run in it that is complete is not repeated, one that was
                interrupted goes on.
            progress: Show how the run goes.

        Raises:
            TrainingInterrupted: somebody asked for an end.
        """
        recipe = job.row.entry.recipe([*self.overrides, f"training.seed={job.seed}"])
        folder = out / job.list / job.row.entry.folder / f"seed-{job.seed}"
        try:
            job.row.runs.append(self._trained(recipe, folder, progress=progress))
        except TrainingInterrupted:
            raise
        except SpandetError as error:
            job.row.failed[job.seed] = str(error)

    def _trained(self, recipe: Recipe, folder: Path, *, progress: bool) -> Trained:
        beside, is_over = _beside(folder), _is_over(folder)
        forget_peak()
        try:
            recognizer = train(
                recipe,
                self.train,
                self.dev,
                out=folder,
                resume=(folder / RECIPE).exists(),
                progress=progress and not is_over,
            )
        finally:
            if not is_over and folder.is_dir():
                beside.peak_memory_bytes = _larger(beside.peak_memory_bytes, peak_bytes())
                _write(folder, beside)
        if beside.predict_sentences_per_second is None:
            beside.predict_sentences_per_second = self._pace(recognizer)
            _write(folder, beside)
        return _read(folder, recipe.training.seed, beside)

    def _pace(self, recognizer: Recognizer) -> float:
        with threads(_PACE.threads):
            return predict_pace(recognizer, self.dev.documents, _PACE).per_second


def _is_over(folder: Path) -> bool:
    return (folder / RUN).exists() and not has_checkpoint(folder)


def _beside(folder: Path) -> Beside:
    path = folder / MEASURED
    return Beside.model_validate_json(path.read_text()) if path.exists() else Beside()


def _write(folder: Path, beside: Beside) -> None:
    with Target(str(folder / MEASURED)).text() as out:
        out.write(beside.model_dump_json(indent=2) + "\n")


def _larger(one: int | None, other: int | None) -> int | None:
    return max((size for size in (one, other) if size is not None), default=None)


def _read(folder: Path, seed: int, beside: Beside) -> Trained:
    run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    score = run["dev"]["micro"]
    # Every epoch has the same sentences.
    pace = statistics.harmonic_mean([epoch["sentences_per_second"] for epoch in run["history"]])
    return Trained(
        seed=seed,
        precision=score["precision"],
        recall=score["recall"],
        f1=score["f1"],
        best_epoch=run["best_epoch"],
        seconds=run["seconds"],
        sentences_per_second=pace,
        parameters=run["parameters"],
        beside=beside,
    )
