"""Static word vectors from a file, frozen or trained further."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.encoding.parts import FormPart, PartSettings
from spandet.encoding.vector_files import Vectors, read_vectors
from spandet.encoding.vocabulary import Counts, Vocabulary
from spandet.errors import ConfigError
from spandet.layers.dropout import Dropout

_UNKNOWN = 0


class WordVectorSettings(PartSettings):
    """Pretrained static word vectors."""

    path: str
    """A word2vec or GloVe file, as text or binary, gzipped or not. Needed for training only."""
    frozen: bool = True
    """Do not train the vectors."""
    vocabulary: Literal["all", "train"] = "all"
    """The words whose vectors the model keeps: all words of the file, or those of the training
    data. `frozen = false` needs "train"."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the words' vectors."""

    @model_validator(mode="after")
    def _trains_what_it_sees(self) -> "WordVectorSettings":
        if not self.frozen and self.vocabulary == "all":
            raise ValueError('frozen = false needs vocabulary = "train"')
        return self

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add all words of the training data."""
        return replace(vocabulary, words=tuple(sorted(counts.words)))

    def new_part(self, vocabulary: Vocabulary) -> "WordVectors":
        """A table with the vectors of the file.

        Raises:
            FormatError: the file is not a vector file.
            ConfigError: it has no word of the training data.
        """
        vectors = load_vectors(self, vocabulary.words)
        part = WordVectors(self, vectors.words, vectors.table.shape[1])
        part.fill(vectors)
        return part

    def saved_part(self, vocabulary: Vocabulary, folder: Path) -> "WordVectors":
        """A table for the words of a saved model."""
        del folder
        return WordVectors(self, vocabulary.words, vocabulary.vector_dim)


class WordVectors(FormPart):
    """Words → vectors from a file. A word without a vector has the mean of all vectors."""

    def __init__(self, settings: WordVectorSettings, words: Sequence[str], dim: int) -> None:
        super().__init__()
        self.dim = dim
        self._words = tuple(words)
        self._ids = {word: number for number, word in enumerate(words, start=1)}
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

    def prepare(self, forms: Sequence[str]) -> Int[Tensor, " form"]:
        """The row of each word, or of its first spelling in other case that has one."""
        known = self._ids
        rows = [
            next((known[spelling] for spelling in spellings(word) if spelling in known), _UNKNOWN)
            for word in forms
        ]
        return torch.tensor(rows, dtype=torch.long)

    def forward(self, rows: Int[Tensor, " form"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.table(rows))
        return vectors


def spellings(word: str) -> Iterator[str]:
    """A word and its spellings in other case, the most likely to have a vector first."""
    yield word
    lower = word.lower()
    yield lower
    yield lower.capitalize()
    yield word.upper()


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
