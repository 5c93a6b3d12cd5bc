"""Words without a vocabulary: what they look like, hashed into tables learnt from scratch."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.config import Settings
from spandet.layers.dropout import Dropout

_LOOKS = 4
_AFFIX = 3


class HashedSettings(Settings):
    """Four looks at a word (lower case, first and last letters, shape), one table for each."""

    dim: int = Field(default=64, ge=1)
    """Size of a word's vector."""
    rows: int = Field(default=4096, ge=1)
    """Rows of each table; words that share a row share its vector."""
    join: Literal["sum", "concat"] = "sum"
    """Add the four vectors, or put them side by side, each a quarter of the size."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On the words' vectors."""

    @model_validator(mode="after")
    def _has_four_quarters(self) -> "HashedSettings":
        if self.join == "concat" and self.dim % _LOOKS:
            raise ValueError(f'join = "concat" needs a dim that {_LOOKS} divides')
        return self


class Hashed(nn.Module):
    """Words → vectors, by what they look like."""

    def __init__(self, settings: HashedSettings) -> None:
        super().__init__()
        self.dim = settings.dim
        self._rows = settings.rows
        self._sums = settings.join == "sum"
        self.table = nn.Embedding(
            _LOOKS * settings.rows, settings.dim if self._sums else settings.dim // _LOOKS
        )
        # Small, because rows that no training word falls into keep these values.
        nn.init.normal_(self.table.weight, std=0.1)
        self.dropout = Dropout(settings.dropout)

    def prepare(self, words: Sequence[str]) -> Int[Tensor, "form look"]:
        """The row of each look at each word."""
        hashes = np.array([looks_of(word) for word in words], dtype=np.int64).reshape(-1, _LOOKS)
        return torch.from_numpy(hashes % self._rows + np.arange(_LOOKS) * self._rows)

    def forward(self, rows: Int[Tensor, "form look"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors = self.table(rows)  # form look dim
        joined: Tensor = vectors.sum(dim=1) if self._sums else vectors.flatten(1)
        return self.dropout(joined)  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 16)
def looks_of(word: str) -> tuple[int, ...]:
    """Four numbers for a word, the same on every machine and in every run."""
    looks = (word.lower(), word[:_AFFIX], word[-_AFFIX:], shape_of(word))
    return tuple(crc32(look.encode("utf-8", "surrogatepass")) for look in looks)


def shape_of(word: str) -> str:
    """Its letters and digits by kind, runs of one kind cut to two: `IL-2` and `CD-4` are `XX-d`."""
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
