"""A pretrained transformer over sub-word pieces, pooled to words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.encoding.examples import Example
from spandet.encoding.parts import PartSettings, WordPart
from spandet.encoding.pieces import PieceBatch, PieceMaker
from spandet.encoding.vocabulary import Vocabulary

Pooling = Literal["mean", "max", "first"]


class TransformerSettings(PartSettings):
    """A pretrained Hugging Face transformer."""

    name: str
    """A folder, a hub id, or `minilm`, the small English encoder of an extra. Needed for training
    only: a trained model contains the transformer."""
    layers: int = Field(default=1, ge=1)
    """A piece's vector is the mean of this many top layers."""
    pooling: Pooling = "mean"
    """How a word's pieces become one vector."""
    context: int = Field(default=0, ge=0)
    """Pieces of context from neighbouring sentences, both sides together; 0 = none."""
    neighbour_sentences: int = Field(default=0, ge=0)
    """Sentences of context on each side, as far as they fit into the transformer's maximum length,
    instead of a number of pieces; 0 = none. (`true` of earlier versions is 1.)"""
    separators: bool = False
    """Put the tokenizer's separator, such as [SEP], between a sentence and its context."""
    passage: int = Field(default=0, ge=0, le=1000)
    """Encode neighbouring sentences of up to this many words together, each with the others as
    context, so that each piece is encoded once; 0 = each sentence by itself."""
    overlap: int = Field(default=64, ge=0)
    """Pieces that neighbouring windows share, in a sentence over the maximum length."""
    freeze_embeddings: bool = False
    """Do not train the embeddings of pieces, which are most weights of a small model."""

    @model_validator(mode="after")
    def _one_kind_of_context(self) -> "TransformerSettings":
        if self.context and self.passage:
            raise ValueError("context and passage exclude each other: one of them must be 0")
        if self.neighbour_sentences and (self.context or self.passage):
            raise ValueError("with neighbour_sentences, context and passage must be 0")
        if self.separators and self.passage:
            raise ValueError("with separators, passage must be 0")
        return self

    def new_part(self, vocabulary: Vocabulary) -> "Transformer":
        """The pretrained transformer."""
        from spandet.encoding.pretrained import fetch  # noqa: PLC0415 (slow to import)

        del vocabulary
        return fetch(self)

    def saved_part(self, vocabulary: Vocabulary, folder: Path) -> "Transformer":
        """The transformer of a saved model."""
        from spandet.encoding.pretrained import from_files  # noqa: PLC0415 (slow to import)

        del vocabulary
        return from_files(self, folder)


@dataclass(frozen=True)
class Contextual:
    """Output of a transformer."""

    words: Float[Tensor, "item dim"]
    """One vector per word, one sentence after another."""
    sentences: Float[Tensor, "batch dim"]
    """One vector per sentence: that of the first piece of its row."""


class Transformer(WordPart):
    """A transformer with its tokenizer: pieces → one vector per word and one per sentence."""

    def __init__(
        self,
        settings: TransformerSettings,
        model: nn.Module,
        pieces: PieceMaker,
        *,
        tokenizer: Any,
        config: Any,
    ) -> None:
        super().__init__()
        self.dim: int = config.hidden_size
        self.model = model
        self.pieces = pieces
        self.tokenizer = tokenizer
        self.config = config
        self._layers = settings.layers
        self._pooling: Pooling = settings.pooling

    def save_files(self, folder: Path) -> None:
        """Write the tokenizer and the configuration."""
        self.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def prepare(self, examples: Sequence[Example]) -> PieceBatch:
        """The pieces of sentences with their context."""
        return self.pieces.prepare(examples)

    def forward(self, batch: PieceBatch) -> Contextual:
        """Encode all rows; a word's vector comes from the row that keeps its pieces."""
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


def pool(
    vectors: Float[Tensor, "own dim"],
    words: Int[Tensor, " own"],
    firsts: Int[Tensor, " item"],
    pooling: Pooling,
) -> Float[Tensor, "item dim"]:
    """Pool the vectors of pieces to vectors of words; the mean is eq. 3 of Proposer and Regressor.

    Args:
        vectors: Of the pieces, one word after another.
        words: The word of each piece.
        firsts: The first piece of each word; every word has one.
        pooling: How a word's pieces become one vector.
    """
    # If every word is one piece, all three are the same.
    if pooling == "first" or len(words) == len(firsts):
        return vectors[firsts]
    result = vectors.new_zeros(len(firsts), vectors.shape[1])
    if pooling == "max":
        places = words[:, None].expand_as(vectors)
        return result.scatter_reduce(0, places, vectors, "amax", include_self=False)
    counts = words.bincount(minlength=len(firsts))
    return result.index_add(0, words, vectors) / counts[:, None]
