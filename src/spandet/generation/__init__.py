"""Embedded data: invented documents with nested entities, for the demo and for tests."""

from spandet.generation.documents import Domain, generate

__all__ = ["Domain", "generate"]
