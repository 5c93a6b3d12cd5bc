"""Static word vectors from a file, frozen or trained further."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.encoding.inputs import WordVectorInput, spellings
from spandet.encoding.part_settings import WordVectorSettings
from spandet.encoding.parts import FormPart
from spandet.encoding.vector_files import Vectors, read_vectors
from spandet.encoding.vocabulary import Vocabulary
from spandet.errors import ConfigError
from spandet.layers.dropout import Dropout

_UNKNOWN = 0


class WordVectors(FormPart):
    """Words → vectors from a file. A word without a vector has the mean of all vectors."""

    def __init__(self, settings: WordVectorSettings, words: Sequence[str], dim: int) -> None:
        super().__init__()
        self.dim = dim
        self._words = tuple(words)
        self.input = WordVectorInput(words)
        # A parameter even if frozen: distributed training would synchronise a buffer.
        self.table = nn.Embedding(1 + len(words), dim)
        self.table.weight.requires_grad_(not settings.frozen)
        self.dropout = Dropout(settings.dropout)

    def fill(self, vectors: Vectors) -> None:
        """Copy the vectors of a file that has exactly the words of this table."""
        table = torch.from_numpy(vectors.table)
        with torch.no_grad():
            self.table.weight[1:] = table
            self.table.weight[_UNKNOWN] = table.mean(dim=0)

    def update(self, vocabulary: Vocabulary) -> Vocabulary:
        """The vocabulary with the words of this table."""
        return replace(vocabulary, words=self._words, vector_dim=self.dim)

    def forward(self, rows: Int[Tensor, " form"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.table(rows))
        return vectors


def load_vectors(settings: WordVectorSettings, train_words: Iterable[str]) -> Vectors:
    """Read the vectors of the words that `settings.vocabulary` selects.

    Raises:
        FormatError: the file is not a vector file.
        ConfigError: it has no word of the training data.
    """
    known = {spelling for word in train_words for spelling in spellings(word)}
    vectors = read_vectors(settings.path, wanted=known if settings.vocabulary == "train" else None)
    if known.isdisjoint(vectors.words):
        raise ConfigError(
            f"[encoder.word_vectors] path: {settings.path} has no word of the training data"
        )
    return vectors
