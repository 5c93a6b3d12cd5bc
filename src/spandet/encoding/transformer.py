"""A pretrained transformer over sub-word pieces, pooled to words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.config import Settings
from spandet.encoding.pieces import PieceBatch, PieceMaker

Pooling = Literal["mean", "max", "first"]


class TransformerSettings(Settings):
    """A pretrained encoder of the Hugging Face kind."""

    name: str
    """A folder, a hub id, or `minilm` for the small English encoder that comes as an extra. Needed
    for training only: a trained model carries all of it."""
    layers: int = Field(default=1, ge=1)
    """A piece's vector is the mean of this many last layers."""
    pooling: Pooling = "mean"
    """How a word's pieces become one vector."""
    context: int = Field(default=0, ge=0)
    """Pieces of neighbouring sentences to read along, both sides together; 0 = none."""
    neighbour_sentences: bool = False
    """Instead of a number of pieces: read the sentence before and the one after along, whole as far
    as the transformer can read them at once."""
    passage: int = Field(default=0, ge=0, le=1000)
    """Read neighbouring sentences of up to so many words at once, each with the others as context:
    nothing is read twice; 0 = each sentence by itself."""
    overlap: int = Field(default=64, ge=0)
    """Pieces that the windows over a sentence that is too long have in common."""
    freeze_embeddings: bool = False
    """Do not train the pieces' own embeddings, which are most of a small model's weights."""

    @model_validator(mode="after")
    def _one_kind_of_context(self) -> "TransformerSettings":
        if self.context and self.passage:
            raise ValueError("context and passage are two ways to the same: one of them must be 0")
        if self.neighbour_sentences and (self.context or self.passage):
            raise ValueError("with neighbour_sentences, context and passage must be 0")
        return self


@dataclass(frozen=True)
class Contextual:
    """What a transformer says of some sentences."""

    words: Float[Tensor, "item dim"]
    """One vector per word, one sentence after another."""
    sentences: Float[Tensor, "batch dim"]
    """One vector per sentence: that of the first piece that it was read with."""


class Transformer(nn.Module):
    """Pieces → one vector per word and one per sentence."""

    def __init__(self, settings: TransformerSettings, model: nn.Module, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.model = model
        self._layers = settings.layers
        self._pooling: Pooling = settings.pooling

    def forward(self, batch: PieceBatch) -> Contextual:
        """Read all rows; a word's vector comes from the row that keeps its pieces."""
        vectors = self.read(batch.ids, batch.mask).flatten(0, 1)
        sentences = vectors[batch.heads * batch.ids.shape[1]]
        pooled = pool(vectors[batch.places], batch.words, batch.firsts, self._pooling)
        return Contextual(pooled, sentences)

    def read(
        self, ids: Int[Tensor, "row piece"], mask: Bool[Tensor, "row piece"]
    ) -> Float[Tensor, "row piece dim"]:
        """One vector per piece: the mean of the last layers."""
        deep = self._layers > 1
        output: Any = self.model(
            input_ids=ids, attention_mask=mask.long(), output_hidden_states=deep
        )
        if not deep:
            last: Tensor = output.last_hidden_state
            return last
        layers: tuple[Tensor, ...] = output.hidden_states[-self._layers :]
        total = layers[0]
        for layer in layers[1:]:
            total = total + layer
        return total / len(layers)


@dataclass(frozen=True)
class Pretrained:
    """A transformer with the tokenizer that it was trained with."""

    transformer: Transformer
    pieces: PieceMaker
    tokenizer: Any
    config: Any

    def save_files(self, folder: Path) -> None:
        """Keep all but the weights."""
        self.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def pool(
    vectors: Float[Tensor, "own dim"],
    words: Int[Tensor, " own"],
    firsts: Int[Tensor, " item"],
    pooling: Pooling,
) -> Float[Tensor, "item dim"]:
    """From the vectors of pieces to those of words; the mean is eq. 3 of Proposer and Regressor.

    Args:
        vectors: Of the pieces, one word after another.
        words: The word of each piece.
        firsts: The first piece of each word; every word has one.
        pooling: What to take of a word's pieces.
    """
    # Where every word is one piece, all three are the same.
    if pooling == "first" or len(words) == len(firsts):
        return vectors[firsts]
    result = vectors.new_zeros(len(firsts), vectors.shape[1])
    if pooling == "max":
        places = words[:, None].expand_as(vectors)
        return result.scatter_reduce(0, places, vectors, "amax", include_self=False)
    counts = words.bincount(minlength=len(firsts))
    return result.index_add(0, words, vectors) / counts[:, None]
