"""Models that take less room: shorter weights, a smaller vocabulary, behind a gate for F1."""

from spandet.packing.report import PackReport
from spandet.packing.run import PackError, PackOptions, pack

__all__ = ["PackError", "PackOptions", "PackReport", "pack"]
