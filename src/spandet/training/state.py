"""How far a run is, in plain values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class DevScore(BaseModel):
    """How good the model was on dev after an epoch (0 to 1), at its best threshold."""

    precision: float
    recall: float
    f1: float
    threshold: float
    """The one with the highest F1."""
    f1_untuned: float
    """At the recipe's threshold."""


class EpochRecord(BaseModel):
    """What one epoch brought."""

    epoch: int
    """Counted from 1, as people do."""
    step: int
    losses: dict[str, float]
    dev: DevScore | None
    sentences_per_second: float
    seconds: float
    """Since the start of the run, pauses not counted."""


class LossSums(BaseModel):
    """Loss parts since some moment: sums and counts, so that their quotients are true means."""

    totals: dict[str, float] = Field(default_factory=dict)
    counts: dict[str, float] = Field(default_factory=dict)

    def add(self, other: LossSums) -> None:
        """Those of one more batch, say."""
        for name, total in other.totals.items():
            self.totals[name] = self.totals.get(name, 0.0) + total
            self.counts[name] = self.counts.get(name, 0.0) + other.counts[name]

    def means(self) -> dict[str, float]:
        """Each part per thing that it counts."""
        return {name: total / max(self.counts[name], 1.0) for name, total in self.totals.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {mean:g}" for name, mean in self.means().items())


class RunState(BaseModel):
    """How far a run is. Order, chance and learning rates follow from it and need no memory."""

    identity: dict[str, Any]
    """Recipe and data: what must be the same for the run to be the same."""
    epoch: int = 0
    """Epochs done."""
    position: int = 0
    """Batches done in the epoch that runs."""
    step: int = 0
    """Optimizer steps done."""
    epoch_losses: LossSums = Field(default_factory=LossSums)
    log_losses: LossSums = Field(default_factory=LossSums)
    """Since the last line of the log."""
    history: list[EpochRecord] = Field(default_factory=list)
    best: int | None = None
    """The best epoch so far, counted from 1."""
    seconds: float = 0.0
    log_bytes: int = 0
    """How much of the log belongs to this state."""
    scaler: dict[str, Any] | None = None
    """Of fp16 arithmetic."""

    @property
    def best_f1(self) -> float | None:
        """On dev, of the best epoch, at its best threshold."""
        record = self.history[self.best - 1] if self.best else None
        return record.dev.f1 if record and record.dev else None
