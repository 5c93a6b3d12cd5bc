"""A batch of sentences as the encoder takes it: everything is a flat list of all their words."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from spandet.encoding.characters import CharacterBatch
from spandet.encoding.pieces import PieceBatch
from spandet.layers.sequences import Sequences
from spandet.tensors import to_device


@dataclass(frozen=True)
class EncoderBatch:
    """Sentences as tensors. Parts that are switched off are None."""

    mask: Bool[Tensor, "batch word"]
    places: Int[Tensor, " item"]
    """Where each word of the flat list stands, counted over all rows of the mask."""
    forms: Int[Tensor, " item"]
    """The number of each word among the distinct words of the batch."""
    pieces: PieceBatch | None = None
    hashed: Int[Tensor, "form look"] | None = None
    characters: CharacterBatch | None = None
    vectors: Int[Tensor, " form"] | None = None
    tags: Int[Tensor, " item"] | None = None
    sequences: Sequences | None = None
    cached: Float[Tensor, "cached_row dim"] | None = None
    """What `Encoder.transformer_words` said of these sentences before; used instead of `pieces`."""

    @property
    def cached_rows(self) -> list[int]:
        """Rows of `cached` per sentence: one for the sentence, then one for each word."""
        return [1 + length for length in self.mask.sum(dim=1).tolist()]

    def to(self, device: torch.device | str) -> "EncoderBatch":
        """The same on another device."""
        return to_device(self, device)
