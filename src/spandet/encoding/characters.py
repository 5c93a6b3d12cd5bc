"""What a word's spelling says: a recurrent net over its characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from spandet.config import Settings
from spandet.layers.dropout import Dropout
from spandet.layers.recurrent import BiRNN, Cell
from spandet.layers.sequences import Sequences, packed

_UNKNOWN, _END = 0, 1
_MOST = 64  # of a longer word, its beginning and its end are read


class CharacterSettings(Settings):
    """Reading words letter by letter."""

    embedding_dim: int = Field(default=50, ge=1)
    """Size of a character's vector."""
    dim: int = Field(default=100, ge=2, multiple_of=2)
    """Size of a word's vector, both directions together."""
    cell: Cell = "lstm"
    """The recurrent net."""
    pooling: Literal["mean", "last"] = "mean"
    """Mean over all characters, or what each direction knows at its end."""
    end_sign: bool = True
    """Read a sign for the end of the word, too, as one more character."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On the characters' vectors."""
    min_count: int = Field(default=2, ge=1)
    """Characters seen less often in training count as unknown, so that the unknown is learnt."""


@dataclass(frozen=True)
class CharacterBatch:
    """The characters of some words, one word after another, each with its end sign, if any."""

    ids: Int[Tensor, " character"]
    sequences: Sequences


class Characters(nn.Module):
    """Words → vectors, by their characters."""

    def __init__(self, settings: CharacterSettings, characters: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self._ids = {character: number for number, character in enumerate(characters, start=2)}
        self._pooling = settings.pooling
        self._end = [_END] if settings.end_sign else []
        self.embedding = nn.Embedding(2 + len(characters), settings.embedding_dim)
        self.dropout = Dropout(settings.dropout)
        self.net = BiRNN(cell=settings.cell, input_dim=settings.embedding_dim, dim=settings.dim)

    def prepare(self, words: Sequence[str]) -> CharacterBatch:
        """The words' characters as tensors."""
        read = [w if len(w) <= _MOST else w[: _MOST // 2] + w[-_MOST // 2 :] for w in words]
        known = self._ids
        ids = [[*(known.get(letter, _UNKNOWN) for letter in word), *self._end] for word in read]
        ids = [own or [_END] for own in ids]  # of an empty word there is nothing else to read
        flat = torch.tensor(list(chain.from_iterable(ids)), dtype=torch.long)
        return CharacterBatch(flat, packed([len(word) for word in ids]))

    def forward(self, batch: CharacterBatch) -> Float[Tensor, "form dim"]:
        """One vector per word; the mean of a GRU's states is eq. 2 of Proposer and Regressor."""
        sequences = batch.sequences
        states: Tensor = self.net(
            self.dropout(self.embedding(batch.ids)), sequences
        )  # character dim
        if self._pooling == "mean":
            total = states.new_zeros(len(sequences.lengths), self.dim)
            total = total.index_add(0, sequences.owner, states)
            return total / sequences.lengths[:, None]
        ends = sequences.lengths.cumsum(0)
        ahead, back = states.chunk(2, dim=-1)
        return torch.cat([ahead[ends - 1], back[ends - sequences.lengths]], dim=-1)
