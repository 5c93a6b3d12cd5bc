"""Names of choices and default values of layers, for settings: needs no torch."""

from typing import Literal

Attention = Literal["dot+spatial", "dot", "spatial", "spatial_window"]
"""Attention between spans: by dot product, by position, or by both."""
Cell = Literal["lstm", "gru"]
"""Cell of a recurrent network."""
FLOOR = 1e-4
"""Minimum precision of a Gaussian."""
EMBEDDING_STD = 0.02
"""Standard deviation of embeddings at the start of training."""
