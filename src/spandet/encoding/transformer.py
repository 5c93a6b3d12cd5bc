"""A pretrained transformer over sub-word pieces, pooled to words."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from spandet.encoding.part_settings import Pooling, TransformerSettings
from spandet.encoding.parts import WordPart
from spandet.encoding.pieces import PieceBatch, PieceMaker


@dataclass(frozen=True)
class Contextual:
    """Output of a transformer."""

    words: Float[Tensor, "item dim"]
    """One vector per word, one sentence after another."""
    sentences: Float[Tensor, "batch dim"]
    """One vector per sentence: that of the first piece of its row."""


class Transformer(WordPart):
    """A transformer with its tokenizer: pieces → one vector per word and one per sentence."""

    input: PieceMaker

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
        self.input = pieces
        self.tokenizer = tokenizer
        self.config = config
        self._layers = settings.layers
        self._pooling: Pooling = settings.pooling

    @property
    def pieces(self) -> PieceMaker:
        """Cuts words into pieces."""
        return self.input

    def save_files(self, folder: Path) -> None:
        """Write the tokenizer and the configuration."""
        self.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

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
    if pooling == "first" or words.shape[0] == firsts.shape[0]:
        return vectors[firsts]
    result = vectors.new_zeros(firsts.shape[0], vectors.shape[1])
    if pooling == "max":
        places = words[:, None].expand_as(vectors)
        return result.scatter_reduce(0, places, vectors, "amax", include_self=False)
    ones = vectors.new_ones(words.shape[0])
    counts = vectors.new_zeros(firsts.shape[0]).index_add(0, words, ones)
    return result.index_add(0, words, vectors) / counts[:, None]
