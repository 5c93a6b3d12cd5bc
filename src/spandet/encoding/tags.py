"""Part-of-speech tags as vectors."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from spandet.config import Settings
from spandet.encoding.examples import Example
from spandet.layers.dropout import Dropout

_UNKNOWN = 0


class TagSettings(Settings):
    """Reading the part-of-speech tags that come with the words."""

    dim: int = Field(default=25, ge=1)
    """Size of a tag's vector."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On the tags' vectors."""
    min_count: int = Field(default=2, ge=1)
    """Tags seen less often in training count as unknown, so that the unknown is learnt."""


class Tags(nn.Module):
    """Tags → vectors. A sentence without tags has the unknown one at every word."""

    def __init__(self, settings: TagSettings, tags: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self._ids: dict[str | None, int] = {tag: number for number, tag in enumerate(tags, start=1)}
        self.embedding = nn.Embedding(1 + len(tags), settings.dim)
        self.dropout = Dropout(settings.dropout)

    def prepare(self, examples: Sequence[Example]) -> Int[Tensor, " item"]:
        """The tags of all words, one sentence after another."""
        ids = [
            self._ids.get(tag, _UNKNOWN)
            for example in examples
            for tag in example.tags or [None] * len(example.words)
        ]
        return torch.tensor(ids, dtype=torch.long)

    def forward(self, ids: Int[Tensor, " item"]) -> Float[Tensor, "item dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.embedding(ids))
        return vectors
