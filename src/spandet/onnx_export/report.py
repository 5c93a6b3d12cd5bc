"""The report of an export: exported methods, parity with torch, F1, size and speed."""

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
    """F1, size and speed of the model in one form."""

    name: str
    """torch, onnx or int8."""
    megabytes: float
    seconds: float
    """Time for all timed sentences."""
    f1: float | None
    """On labelled data."""

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
    """The report of an accepted export."""

    precision: Precision
    exported: Mapping[str, int]
    """The exported methods, and the number of weights of each."""
    kept: Mapping[str, str]
    """Methods and weights that torch still computes, with the reasons."""
    parity: Parity
    measured: tuple[Measured, ...]
    sentences: int
    """Number of timed sentences."""
    clock: str
    """How the time was measured."""
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The number of exported methods, and the result of the check of this precision."""
        what = f"exported {len(self.exported)} methods ({self.precision})"
        if self.precision == "int8":  # parity was checked for the float graphs only
            before, after = (percent(self.measured[place].f1 or 0.0) for place in (0, -1))
            return f"{what}: F1 {after}, with torch {before}"
        return (
            f"{what}: same entities as torch in {self.parity.documents:,} documents, scores differ "
            f"by at most {self.parity.largest:.0e}"
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
        """Size and speed, parity, exported methods."""
        yield self._models()
        parity = self.parity
        yield Table(
            title="Parity of the float graphs with torch",
            columns=("", "value"),
            rows=(
                ("documents", parity.documents),
                ("entities of both", parity.entities),
                ("entities of one only", len(parity.different)),
                ("ties", parity.ties),
                ("largest difference of scores", f"{parity.largest:.1e}"),
                ("allowed", f"{parity.bound:.0e}"),
            ),
        )
        yield Table(
            title="Exported",
            columns=("method", "weights"),
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
    """Convert bytes to megabytes."""
    return size / _MEGABYTE
