"""Selection of raw text: the passages that read most like a corpus, without near duplicates."""

from spandet.selection.run import Selection, SelectionSettings, select

__all__ = ["Selection", "SelectionSettings", "select"]
