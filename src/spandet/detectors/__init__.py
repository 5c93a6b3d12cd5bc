"""Detectors. `settings` has the table of their settings, which needs no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spandet.detectors.base import Detector
    from spandet.detectors.table import DETECTORS, DetectorRow

__all__ = ["DETECTORS", "Detector", "DetectorRow"]


def __getattr__(name: str) -> Any:
    """Load a detector's modules, and torch with them, when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "base" if name == "Detector" else "table"
    return getattr(import_module(f"{__name__}.{home}"), name)
