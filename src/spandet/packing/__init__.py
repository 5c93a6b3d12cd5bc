"""Smaller model folders: quantised weights and a pruned vocabulary, if F1 hardly falls."""

from spandet.packing.run import PackError, PackOptions, PackReport, pack

__all__ = ["PackError", "PackOptions", "PackReport", "pack"]
