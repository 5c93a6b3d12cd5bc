"""What there is to say about a run when it is over."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from spandet.evaluation import Report
from spandet.text import Document
from spandet.training.checkpoint import RunState
from spandet.training.data import Split
from spandet.training.recipe import Recipe

RUN = "run.json"

Row = tuple[str, ...]
"""Of a table, in words."""

_PACKAGES = ("spandet", "torch", "transformers", "tokenizers", "accelerate", "safetensors")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished run: for the report, the model card and run.json."""

    recipe: Recipe
    state: RunState
    train: Split
    dev: Split | None
    labels: tuple[str, ...]
    parameters: int
    """Of the model."""
    warnings: tuple[str, ...] = ()
    scores: Report | None = None
    """On dev, of the best epoch with tuned thresholds."""
    decoding: dict[str, Any]
    """Thresholds after tuning."""
    predicted: Sequence[Document] = ()
    """Dev as the model sees it."""

    @property
    def splits(self) -> dict[str, Split]:
        """The data by what they were for."""
        return {"train": self.train} | ({"dev": self.dev} if self.dev else {})

    def data_rows(self) -> list[Row]:
        """Which data it was, under a heading."""
        head: Row = ("", "file", "documents", "sentences", "entities", "sha256")
        return [
            head,
            *(
                (
                    name,
                    split.name,
                    f"{len(split.documents):,}",
                    f"{split.sentences:,}",
                    f"{split.entities:,}",
                    split.file_sha256 or "",
                )
                for name, split in self.splits.items()
            ),
        ]

    def score_rows(self) -> list[Row]:
        """Scores on dev by label, under a heading; nothing without dev."""
        if self.scores is None:
            return []
        rows: list[Row] = [("label", "P", "R", "F1", "gold", "predicted")]
        for name, one in [("all", self.scores.micro), *self.scores.labels.items()]:
            shares = map(percent, (one.precision, one.recall, one.f1))
            rows.append((name, *shares, f"{one.gold:,}", f"{one.predicted:,}"))
        return rows

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete enough to compare runs with."""
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


def percent(share: float) -> str:
    """With two decimals, without the sign."""
    return f"{100 * share:.2f}"


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree
            continue
    return found
