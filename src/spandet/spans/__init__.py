"""Span geometry: pure functions on tensors, correct for any batch size and for no spans."""
