"""Hashed features of words in tables that are trained from scratch; needs no vocabulary."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.encoding.parts import FormPart, PartSettings
from spandet.encoding.vocabulary import Vocabulary
from spandet.layers.dropout import Dropout

_FEATURES = 4
_AFFIX = 3


class HashedSettings(PartSettings):
    """Four features of a word (lower case, prefix, suffix, shape), with a table for each."""

    dim: int = Field(default=64, ge=1)
    """Size of a word's vector."""
    rows: int = Field(default=4096, ge=1)
    """Rows of each table; features with the same hash share a row."""
    join: Literal["sum", "concat"] = "sum"
    """Add the four vectors, or concatenate them, each a quarter of the size."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the words' vectors."""

    @model_validator(mode="after")
    def _has_four_quarters(self) -> "HashedSettings":
        if self.join == "concat" and self.dim % _FEATURES:
            raise ValueError(f'join = "concat" needs a dim that {_FEATURES} divides')
        return self

    def new_part(self, vocabulary: Vocabulary) -> "Hashed":
        """Tables with random vectors."""
        del vocabulary
        return Hashed(self)


class Hashed(FormPart):
    """Words → vectors, from their hashed features."""

    def __init__(self, settings: HashedSettings) -> None:
        super().__init__()
        self.dim = settings.dim
        self._rows = settings.rows
        self._sums = settings.join == "sum"
        self.table = nn.Embedding(
            _FEATURES * settings.rows, settings.dim if self._sums else settings.dim // _FEATURES
        )
        # Small, because rows of features that do not occur in training keep these values.
        nn.init.normal_(self.table.weight, std=0.1)
        self.dropout = Dropout(settings.dropout)

    def prepare(self, forms: Sequence[str]) -> Int[Tensor, "form feature"]:
        """The row of each feature of each word."""
        hashes = np.array([hashes_of(word) for word in forms], dtype=np.int64)
        rows = hashes.reshape(-1, _FEATURES) % self._rows
        return torch.from_numpy(rows + np.arange(_FEATURES) * self._rows)

    def forward(self, rows: Int[Tensor, "form feature"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors = self.table(rows)  # form feature dim
        joined: Tensor = vectors.sum(dim=1) if self._sums else vectors.flatten(1)
        return self.dropout(joined)  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 16)
def hashes_of(word: str) -> tuple[int, ...]:
    """The hashes of a word's features, the same on every machine and in every run."""
    features = (word.lower(), word[:_AFFIX], word[-_AFFIX:], shape_of(word))
    return tuple(crc32(feature.encode("utf-8", "surrogatepass")) for feature in features)


def shape_of(word: str) -> str:
    """Characters by kind, at most two of one kind in a row: `IL-2` and `CD-4` are `XX-d`."""
    shape: list[str] = []
    for character in word:
        kind = _kind(character)
        if shape[-2:] != [kind, kind]:
            shape.append(kind)
    return "".join(shape)


def _kind(character: str) -> str:
    if character.isdigit():
        return "d"
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return character
