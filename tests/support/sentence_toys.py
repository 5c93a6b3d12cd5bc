"""Sentences of random word vectors with entities, for tests of detectors and layers."""

from __future__ import annotations

import torch

from spandet.seeding import generator
from spandet.tensors import GoldSpans, WordFeatures

Item = tuple[int, int, int]
"""start, end, label"""


def word_features(*lengths: int, dim: int, width: int = 0, litter: bool = False) -> WordFeatures:
    """Sentences of these lengths; sentences of the same length have the same vectors.

    With `litter`, the padding is not zero; detectors must ignore it.
    """
    width = max(width, *lengths, 0)
    mask = torch.arange(width) < torch.tensor(lengths, dtype=torch.long)[:, None]
    features = torch.zeros(len(lengths), width, dim)
    if litter:
        features.normal_(generator=generator("litter", width))
    for row, length in enumerate(lengths):
        features[row, :length] = torch.randn(length, dim, generator=generator("row", length))
    return WordFeatures(features, mask)


def gold_spans(*sentences: list[Item]) -> GoldSpans:
    most = max((len(items) for items in sentences), default=0)
    padded = [items + [(0, 1, 0)] * (most - len(items)) for items in sentences]
    table = torch.tensor(padded, dtype=torch.long).reshape(len(sentences), most, 3)
    return GoldSpans(table[..., :2], table[..., 2], table[..., 2] > 0)
