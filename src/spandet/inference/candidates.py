"""The candidates of a detector as NumPy arrays: the input of decoding, which needs no torch.

Axes and units are those of `spandet.tensors`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped


@dataclass(frozen=True)
class LinkProbs:
    """Probabilities that fragments form discontinuous entities."""

    together: Float[np.ndarray, "batch span span"]
    """Two fragments belong to one entity; symmetric, and 0 for fragments that touch or overlap."""
    alone: Float[np.ndarray, "batch span"]
    """A fragment is an entity by itself."""


@dataclass(frozen=True)
class Candidates:
    """The scored spans of a batch, before decoding."""

    spans: Int[np.ndarray, "batch span 2"]
    label_probs: Float[np.ndarray, "batch span label"]
    mask: Bool[np.ndarray, "batch span"]
    links: LinkProbs | None = None
    """From detectors that predict the fragments of discontinuous entities."""
    type_probs: Float[np.ndarray, "batch span"] | None = None
    """Probability of the best label alone, where `label_probs` contain other factors."""


def row_mask(sentence: Int[np.ndarray, " span"], batch: int) -> Bool[np.ndarray, "batch most"]:
    """The mask of a flat list as padded rows, one per sentence. `sentence` must be sorted."""
    counts = np.bincount(sentence, minlength=batch)
    mask: np.ndarray = np.arange(counts.max(initial=0)) < counts[:, None]
    return mask


def to_rows(
    values: Shaped[np.ndarray, "span *rest"], mask: Bool[np.ndarray, "batch most"]
) -> Shaped[np.ndarray, "batch most *rest"]:
    """The values of a flat list as padded rows; `rows[mask]` is the list again."""
    rows = np.zeros((*mask.shape, *values.shape[1:]), values.dtype)
    rows[mask] = values
    return rows
