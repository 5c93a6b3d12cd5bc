"""A recurrent network over the characters of each word."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from spandet.encoding.parts import FormPart, PartSettings
from spandet.encoding.vocabulary import Counts, Vocabulary, frequent
from spandet.layers.dropout import Dropout
from spandet.layers.recurrent import BiRNN, Cell
from spandet.layers.sequences import Sequences, packed

_UNKNOWN, _END = 0, 1
_MAX_LENGTH = 64  # of a longer word, only its beginning and its end are used


class CharacterSettings(PartSettings):
    """A recurrent network over the characters of each word."""

    embedding_dim: int = Field(default=50, ge=1)
    """Size of a character's vector."""
    dim: int = Field(default=100, ge=2, multiple_of=2)
    """Size of a word's vector, both directions together."""
    cell: Cell = "lstm"
    """The recurrent cell."""
    pooling: Literal["mean", "last"] = "mean"
    """The mean of all states, or the last state of each direction."""
    end_sign: bool = True
    """Append an end-of-word symbol to each word."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the characters' vectors."""
    min_count: int = Field(default=2, ge=1)
    """Less frequent characters of the training data are unknown, so that the vector of unknown
    characters is trained."""

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add the frequent characters."""
        return replace(vocabulary, characters=frequent(counts.characters, self.min_count))

    def new_part(self, vocabulary: Vocabulary) -> "Characters":
        """A network over the known characters."""
        return Characters(self, vocabulary.characters)


@dataclass(frozen=True)
class CharacterBatch:
    """The characters of words, one word after another, with their end-of-word symbols."""

    ids: Int[Tensor, " character"]
    sequences: Sequences


class Characters(FormPart):
    """Words → vectors, from their characters."""

    def __init__(self, settings: CharacterSettings, characters: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self._ids = {character: number for number, character in enumerate(characters, start=2)}
        self._pooling = settings.pooling
        self._end = [_END] if settings.end_sign else []
        self.embedding = nn.Embedding(2 + len(characters), settings.embedding_dim)
        self.dropout = Dropout(settings.dropout)
        self.net = BiRNN(cell=settings.cell, input_dim=settings.embedding_dim, dim=settings.dim)

    def prepare(self, forms: Sequence[str]) -> CharacterBatch:
        """The ids of the words' characters."""
        half = _MAX_LENGTH // 2
        used = [word if len(word) <= _MAX_LENGTH else word[:half] + word[-half:] for word in forms]
        known = self._ids
        ids = [[*(known.get(letter, _UNKNOWN) for letter in word), *self._end] for word in used]
        ids = [own or [_END] for own in ids]  # an empty word must have a character, too
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
