"""Settings of biaffine, and its presets."""

from typing import Any, Literal

from spandet.config import DetectorSettings, Natural, Positive, Share


class BiaffineSettings(DetectorSettings):
    """Options of biaffine."""

    name: Literal["biaffine"] = "biaffine"
    dim: Positive = 150
    """Size of the two vectors of a word, as the first and as the last word of a span."""
    activation: Literal["gelu", "none"] = "gelu"
    """Activation after the linear maps to these vectors."""
    max_width: Natural = 32
    """Maximum span width in words; 0: no maximum, with quadratic cost in the sentence length."""
    smoothing: Share = 0.0
    """Boundary smoothing: share of an entity's label given to the four spans one word off."""
    min_odds: Share = 0.1
    """Keep a span when its best label is more probable than `min_odds` times "no entity"."""
    dropout: Share = 0.2
    """Dropout on word vectors and on the first-word and last-word vectors."""


_PAPER: dict[str, dict[str, Any]] = {
    "detector": {"max_width": 0, "min_odds": 1.0},
    "decoding": {"threshold": 0.0},
}
PRESETS = {
    "paper": _PAPER,
    "released-code": {**_PAPER, "detector": {**_PAPER["detector"], "activation": "none"}},
}
