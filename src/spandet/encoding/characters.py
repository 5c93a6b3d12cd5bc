"""A recurrent network over the characters of each word."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spandet.encoding.inputs import CharacterBatch, CharacterInput
from spandet.encoding.part_settings import CharacterSettings
from spandet.encoding.parts import FormPart
from spandet.layers.dropout import Dropout
from spandet.layers.recurrent import BiRNN


class Characters(FormPart):
    """Words → vectors, from their characters."""

    def __init__(self, settings: CharacterSettings, characters: Sequence[str]) -> None:
        super().__init__()
        self.dim = settings.dim
        self.input = CharacterInput(characters, end_sign=settings.end_sign)
        self._pooling = settings.pooling
        self.embedding = nn.Embedding(2 + len(characters), settings.embedding_dim)
        self.dropout = Dropout(settings.dropout)
        self.net = BiRNN(cell=settings.cell, input_dim=settings.embedding_dim, dim=settings.dim)

    def forward(self, batch: CharacterBatch) -> Float[Tensor, "form dim"]:
        """One vector per word; the mean of a GRU's states is eq. 2 of Proposer and Regressor."""
        sequences = batch.sequences
        states: Tensor = self.net(
            self.dropout(self.embedding(batch.ids)), sequences
        )  # character dim
        if self._pooling == "mean":
            total = states.new_zeros(sequences.lengths.shape[0], self.dim)
            total = total.index_add(0, sequences.owner, states)
            mean: Tensor = total / sequences.lengths[:, None]
            return mean
        ends = sequences.lengths.cumsum(0)
        ahead, back = states.chunk(2, dim=-1)
        return torch.cat([ahead[ends - 1], back[ends - sequences.lengths]], dim=-1)
