"""Selection of raw text: the passages that are most similar to a corpus."""

from spandet.selection.run import Selection, SelectionSettings, select

__all__ = ["Selection", "SelectionSettings", "select"]
