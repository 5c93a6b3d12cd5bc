"""Static word vectors from a file, frozen or trained further."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from spandet.config import Settings
from spandet.encoding.vector_files import Vectors, read_vectors
from spandet.errors import ConfigError
from spandet.layers.dropout import Dropout

_UNKNOWN = 0


class WordVectorSettings(Settings):
    """Vectors that somebody learnt from much text."""

    path: str
    """A word2vec or GloVe file, as text or binary, gzipped or not. Needed for training only."""
    frozen: bool = True
    """Keep the vectors as they are, or train them further."""
    vocabulary: Literal["all", "train"] = "all"
    """Which words keep their vectors in the model: all of the file, or those of the training data.
    Vectors that are trained further need "train"."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On the words' vectors."""

    @model_validator(mode="after")
    def _trains_what_it_sees(self) -> "WordVectorSettings":
        if not self.frozen and self.vocabulary == "all":
            raise ValueError('frozen = false needs vocabulary = "train"')
        return self


class WordVectors(nn.Module):
    """Words → the vectors of their file. A word without one has the mean of all."""

    def __init__(self, settings: WordVectorSettings, words: Sequence[str], dim: int) -> None:
        super().__init__()
        self.dim = dim
        self._ids = {word: number for number, word in enumerate(words, start=1)}
        # A parameter even when frozen: processes that train together would send buffers around.
        self.table = nn.Embedding(1 + len(words), dim)
        self.table.weight.requires_grad_(not settings.frozen)
        self.dropout = Dropout(settings.dropout)

    def fill(self, vectors: Vectors) -> None:
        """Take over the vectors of a file; its words are those that this part was made with."""
        table = torch.from_numpy(vectors.table)
        with torch.no_grad():
            self.table.weight[1:] = table
            self.table.weight[_UNKNOWN] = table.mean(dim=0)

    def prepare(self, words: Sequence[str]) -> Int[Tensor, " form"]:
        """The row of each word, or of the nearest spelling in other case."""
        known = self._ids
        rows = [
            next((known[form] for form in forms_of(word) if form in known), _UNKNOWN)
            for word in words
        ]
        return torch.tensor(rows, dtype=torch.long)

    def forward(self, rows: Int[Tensor, " form"]) -> Float[Tensor, "form dim"]:
        """One vector per word."""
        vectors: Tensor = self.dropout(self.table(rows))
        return vectors


def forms_of(word: str) -> Iterator[str]:
    """A word and its spellings in other case, the most likely to have a vector first."""
    yield word
    lower = word.lower()
    yield lower
    yield lower.capitalize()
    yield word.upper()


def load_vectors(settings: WordVectorSettings, train_words: Iterable[str]) -> Vectors:
    """The vectors that the settings ask for.

    Raises:
        FormatError: the file is no vector file.
        ConfigError: it knows no word of the training data.
    """
    forms = {form for word in train_words for form in forms_of(word)}
    vectors = read_vectors(settings.path, wanted=forms if settings.vocabulary == "train" else None)
    if forms.isdisjoint(vectors.words):
        raise ConfigError(
            f"[encoder.word_vectors] path: {settings.path} has no word of the training data"
        )
    return vectors
