"""Synthetic documents with nested entities, for demos and tests."""

from spandet.generation.documents import Domain, generate

__all__ = ["Domain", "generate"]
