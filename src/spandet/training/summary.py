"""The facts of a finished training run, for its report, its model card and run.json."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from spandet.evaluation import Report
from spandet.evaluation.scores import SCORE_COLUMNS
from spandet.rendering.tables import Table
from spandet.text import Document
from spandet.training.checkpoint import RunState
from spandet.training.data import Split
from spandet.training.recipe import Recipe

RUN = "run.json"

_PACKAGES = ("spandet", "torch", "transformers", "tokenizers", "accelerate", "safetensors")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished training run."""

    recipe: Recipe
    state: RunState
    train: Split
    dev: Split | None
    labels: tuple[str, ...]
    parameters: int
    """How many the model has."""
    warnings: tuple[str, ...] = ()
    scores: Report | None = None
    """On dev, of the best epoch, after tuning if the recipe tunes."""
    decoding: dict[str, Any]
    """Decoding settings of the saved model."""
    predicted: Sequence[Document] = ()
    """The dev documents with predicted entities."""

    @property
    def splits(self) -> dict[str, Split]:
        """The training data, and the dev data where there are any, by name."""
        return {"train": self.train} | ({"dev": self.dev} if self.dev else {})

    @property
    def tuned(self) -> bool:
        """Whether decoding settings were tuned on dev."""
        return self.dev is not None and self.recipe.training.tune

    def data_table(self) -> Table:
        """Files, sizes and digests of the data."""
        return Table(
            title="Data",
            columns=("", "file", "documents", "sentences", "entities", "sha256"),
            rows=tuple(
                (
                    name,
                    split.name,
                    len(split.documents),
                    split.sentences,
                    split.entities,
                    split.file_sha256 or "",
                )
                for name, split in self.splits.items()
            ),
        )

    def score_table(self) -> Table | None:
        """Scores on dev by label; None without dev data."""
        if self.scores is None:
            return None
        scores = [("all", self.scores.micro), *self.scores.labels.items()]
        return Table(
            title="Labels on dev",
            columns=("label", *SCORE_COLUMNS),
            rows=tuple(
                (name, one.precision, one.recall, one.f1, one.gold, one.predicted)
                for name, one in scores
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """The content of run.json."""
        return {
            "identity": self.state.identity,
            "seconds": self.state.seconds,
            "steps": self.state.step,
            "best_epoch": self.state.best,
            "history": [record.model_dump() for record in self.state.history],
            "dev": self.scores.to_json() if self.scores else None,
            "decoding": self.decoding,
            "data": {
                name: {
                    "name": split.name,
                    "documents": len(split.documents),
                    "sentences": split.sentences,
                    "entities": split.entities,
                    "sha256": split.file_sha256,
                }
                for name, split in self.splits.items()
            },
            "warnings": list(self.warnings),
            "parameters": self.parameters,
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # spandet itself, run from a source tree
            continue
    return found
