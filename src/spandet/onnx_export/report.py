"""What an export was made of, and how it did at its gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spandet.inference.onnx_folder import Precision
from spandet.onnx_export.parity import Parity
from spandet.rendering.tables import Cell, Table, Tabular, percent

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Measured:
    """One form of the model: how well and how fast it works."""

    name: str
    """torch, onnx or int8."""
    megabytes: float
    seconds: float
    """For all sentences that were timed."""
    f1: float | None
    """Where the data say what is right."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "megabytes": round(self.megabytes, 2),
            "seconds": self.seconds,
            "f1": self.f1,
        }


@dataclass(frozen=True)
class ExportReport(Tabular):
    """All that there is to say about an accepted export."""

    precision: Precision
    exported: Mapping[str, int]
    """The parts that are graphs, and how many weights each has."""
    kept: Mapping[str, str]
    """What stayed in torch, and why."""
    parity: Parity
    measured: tuple[Measured, ...]
    sentences: int
    """How many were timed."""
    clock: str
    """How they were timed."""
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """How much was exported, and what was shown of just this form of it."""
        what = f"exported {len(self.exported)} parts ({self.precision})"
        if self.precision == "int8":  # parity was shown of the float graphs alone
            before, after = (percent(self.measured[place].f1 or 0.0) for place in (0, -1))
            return f"{what}: F1 {after}, with torch {before}"
        return (
            f"{what}: as torch in {self.parity.documents:,} documents, scores up to "
            f"{self.parity.largest:.0e} apart"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; speed is relative to torch."""
        torch = self.measured[0].seconds
        return {
            "precision": self.precision,
            "exported": dict(self.exported),
            "kept": dict(self.kept),
            "parity": self.parity.to_json(),
            "models": [
                {**one.to_json(), "speed": torch / one.seconds if one.seconds else None}
                for one in self.measured
            ],
            "timed_sentences": self.sentences,
            "timing": self.clock,
            "remarks": list(self.remarks),
        }

    def tables(self) -> Iterator[Table]:
        """Size and speed, the gate, the parts."""
        yield self._models()
        parity = self.parity
        yield Table(
            title="Parity of the float graphs with torch",
            columns=("", "value"),
            rows=(
                ("documents", parity.documents),
                ("found by both", parity.entities),
                ("found by one only", len(parity.different)),
                ("ties", parity.ties),
                ("scores apart", f"{parity.largest:.1e}"),
                ("allowed", f"{parity.bound:.0e}"),
            ),
        )
        yield Table(
            title="Exported",
            columns=("part", "weights"),
            rows=tuple(self.exported.items()),
        )
        if self.kept:
            yield Table(
                title="Kept in torch", columns=("what", "why"), rows=tuple(self.kept.items())
            )

    def _models(self) -> Table:
        torch = self.measured[0].seconds
        rows: list[tuple[Cell, ...]] = [
            (
                one.name,
                one.f1,
                f"{one.megabytes:.1f}",
                f"{1000 * one.seconds / max(self.sentences, 1):.1f}",
                f"{torch / one.seconds:.2f}" if one.seconds else None,
            )
            for one in self.measured
        ]
        note = f"{self.sentences:,} sentences, {self.clock}"
        return Table(
            title="Models",
            columns=("", "F1", "MB", "ms per sentence", "speed"),
            rows=tuple(rows),
            note="; ".join([note, *self.remarks]),
        )


def megabytes(size: int) -> float:
    """Bytes in a larger unit."""
    return size / _MEGABYTE
