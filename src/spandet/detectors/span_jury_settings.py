"""Settings of span-jury."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from spandet.config import DetectorSettings, Natural, Positive, Share, Weight
from spandet.layers.choices import Attention
from spandet.spans.counts import candidate_counts

NOMINEES = "nominees"


class SpanJurySettings(DetectorSettings):
    """Options of span-jury."""

    name: Literal["span-jury"] = "span-jury"
    nominees_per_word: Weight = 0.5
    """Number of nominees per word of a sentence."""
    nominees_extra: Natural = 8
    """Number of nominees in addition."""
    nomination_dim: Positive = 128
    """Size of the first-word and last-word vectors that score all spans."""
    dim: Positive = 192
    """Size of a nominee's vector."""
    rounds: Natural = 2
    """Number of rounds of attention between nominees; 0: each is classified by itself."""
    eval_rounds: Natural | None = None
    """Rounds in prediction, at most `rounds`; None: all of them."""
    heads: Positive = 4
    """Number of attention heads."""
    attention: Attention = "dot+spatial"
    """Attention by dot product, by position, or by both."""
    use_category_embedding: bool = True
    """Add an embedding of the current label probabilities to each nominee."""
    dropout: Share = 0.1
    """Dropout on the inputs of the heads and in attention."""
    label_weight: Weight = 6.0
    """Weight of the label loss; the nomination loss has weight 1."""
    none_weight: Weight = 1.0
    """Loss weight of nominees that are no entity."""
    smoothing: Share = 0.0
    """Boundary smoothing: share of an entity's label given to the four spans one word off."""
    auxiliary: bool = True
    """Apply the label loss after every round, not only after the last."""

    def graph_inputs(self, lengths: Sequence[int]) -> dict[str, np.ndarray]:
        """Mask of the nominees of each sentence."""
        counts = candidate_counts(lengths, None, self.nominees_per_word, self.nominees_extra)
        return {NOMINEES: np.arange(max([1, *counts])) < np.array(counts, np.int64)[:, None]}
