"""What packing a model has saved, and what it has cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from spandet.inference.weights import Kept
from spandet.rendering.tables import Table, Tabular, percent

_POINTS = 100
_MEGABYTE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Scored:
    """How well both models read the same data."""

    data: str
    documents: int
    sentences: int
    entities: int
    parent_f1: float
    f1: float

    @property
    def loss(self) -> float:
        """Points of F1 that packing has cost."""
        return _POINTS * (self.parent_f1 - self.f1)


@dataclass(frozen=True, kw_only=True)
class PackReport(Tabular):
    """All that there is to say about a packed model."""

    weights: Kept
    pieces: int | None
    """Of its vocabulary; None without a transformer."""
    parent_pieces: int | None
    bytes: int
    """Of all files that the model needs."""
    parent_bytes: int
    scores: tuple[Scored, ...]

    @property
    def title(self) -> str:
        """What was done, and what for."""
        pieces = ""
        if self.pieces is not None and self.pieces != self.parent_pieces:
            pieces = f", {self.pieces:,} of {self.parent_pieces:,} pieces"
        size = f"{self.bytes / _MEGABYTE:.1f} MB of {self.parent_bytes / _MEGABYTE:.1f}"
        f1 = "; ".join(
            f"{percent(one.f1)} on {one.data} (parent {percent(one.parent_f1)})"
            for one in self.scores
        )
        return f"Packed ({self.weights} weights{pieces}): {size}, F1 {f1}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def tables(self) -> Iterator[Table]:
        """F1 before and after."""
        yield Table(
            title="F1 of the packed model and of its parent",
            columns=("data", "documents", "sentences", "entities", "parent", "packed"),
            rows=tuple(
                (one.data, one.documents, one.sentences, one.entities, one.parent_f1, one.f1)
                for one in self.scores
            ),
        )
