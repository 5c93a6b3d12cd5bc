"""Settings of the parts of an encoder and of their fusion; only building a part needs torch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from spandet.config import Settings
from spandet.encoding.inputs import (
    FEATURES,
    CharacterInput,
    HashedInput,
    PartInput,
    TagInput,
    WordVectorInput,
)
from spandet.encoding.pieces import PIECES, PieceMaker
from spandet.encoding.vocabulary import Counts, Vocabulary, frequent
from spandet.layers.choices import Cell

if TYPE_CHECKING:
    from spandet.encoding.characters import Characters
    from spandet.encoding.hashed import Hashed
    from spandet.encoding.parts import EncoderPart
    from spandet.encoding.tags import Tags
    from spandet.encoding.transformer import Transformer
    from spandet.encoding.word_vectors import WordVectors

Pooling = Literal["mean", "max", "first"]


class PartSettings(Settings):
    """Settings of a part, which build it and its input."""

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add the names in the training data that the part needs to a vocabulary."""
        del counts
        return vocabulary

    @abstractmethod
    def input(self, vocabulary: Vocabulary, folder: Path) -> PartInput:
        """The input of the part of a saved model: words to NumPy arrays.

        Args:
            vocabulary: The saved vocabulary.
            folder: Where the part's own files are.
        """

    @abstractmethod
    def new_part(self, vocabulary: Vocabulary) -> EncoderPart:
        """Build the part for training, with pretrained weights where it has any."""

    def saved_part(self, vocabulary: Vocabulary, folder: Path) -> EncoderPart:
        """Build the part of a saved model; its weights are loaded afterwards.

        Args:
            vocabulary: The saved vocabulary.
            folder: Where `EncoderPart.save_files` wrote.
        """
        del folder
        return self.new_part(vocabulary)


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
    def _one_kind_of_context(self) -> TransformerSettings:
        if self.context and self.passage:
            raise ValueError("context and passage exclude each other: one of them must be 0")
        if self.neighbour_sentences and (self.context or self.passage):
            raise ValueError("with neighbour_sentences, context and passage must be 0")
        if self.separators and self.passage:
            raise ValueError("with separators, passage must be 0")
        return self

    def input(self, vocabulary: Vocabulary, folder: Path) -> PieceMaker:
        """The sub-word pieces, from the file that `PieceMaker.save` wrote."""
        del vocabulary
        return PieceMaker.load(folder / PIECES)

    def new_part(self, vocabulary: Vocabulary) -> Transformer:
        """The pretrained transformer."""
        from spandet.encoding.pretrained import fetch  # noqa: PLC0415 (slow to import)

        del vocabulary
        return fetch(self)

    def saved_part(self, vocabulary: Vocabulary, folder: Path) -> Transformer:
        """The transformer of a saved model."""
        from spandet.encoding.pretrained import from_files  # noqa: PLC0415 (slow to import)

        del vocabulary
        return from_files(self, folder)


class HashedSettings(PartSettings):
    """Four features of a word (lower case, prefix, suffix, shape), with a table for each."""

    dim: int = Field(default=64, ge=1)
    """Size of a word's vector."""
    rows: int = Field(default=4096, ge=1)
    """Rows of each table; features with the same hash share a row."""
    join: Literal["sum", "concat"] = "sum"
    """Add the four vectors, or concatenate them, each a quarter of the size."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the words' vectors."""

    @model_validator(mode="after")
    def _has_four_quarters(self) -> HashedSettings:
        if self.join == "concat" and self.dim % FEATURES:
            raise ValueError(f'join = "concat" needs a dim that {FEATURES} divides')
        return self

    def input(self, vocabulary: Vocabulary, folder: Path | None = None) -> HashedInput:
        """The rows of words in the tables."""
        del vocabulary, folder
        return HashedInput(self.rows)

    def new_part(self, vocabulary: Vocabulary) -> Hashed:
        """Tables with random vectors."""
        from spandet.encoding.hashed import Hashed  # noqa: PLC0415 (loads torch)

        del vocabulary
        return Hashed(self)


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

    def input(self, vocabulary: Vocabulary, folder: Path | None = None) -> CharacterInput:
        """The ids of characters."""
        del folder
        return CharacterInput(vocabulary.characters, end_sign=self.end_sign)

    def new_part(self, vocabulary: Vocabulary) -> Characters:
        """A network over the known characters."""
        from spandet.encoding.characters import Characters  # noqa: PLC0415 (loads torch)

        return Characters(self, vocabulary.characters)


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
    def _trains_what_it_sees(self) -> WordVectorSettings:
        if not self.frozen and self.vocabulary == "all":
            raise ValueError('frozen = false needs vocabulary = "train"')
        return self

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add all words of the training data."""
        return replace(vocabulary, words=tuple(sorted(counts.words)))

    def input(self, vocabulary: Vocabulary, folder: Path | None = None) -> WordVectorInput:
        """The rows of words in the table."""
        del folder
        return WordVectorInput(vocabulary.words)

    def new_part(self, vocabulary: Vocabulary) -> WordVectors:
        """A table with the vectors of the file.

        Raises:
            FormatError: the file is not a vector file.
            ConfigError: it has no word of the training data.
        """
        from spandet.encoding.word_vectors import WordVectors, load_vectors  # noqa: PLC0415 (loads torch)

        vectors = load_vectors(self, vocabulary.words)
        part = WordVectors(self, vectors.words, vectors.table.shape[1])
        part.fill(vectors)
        return part

    def saved_part(self, vocabulary: Vocabulary, folder: Path) -> WordVectors:
        """A table for the words of a saved model."""
        from spandet.encoding.word_vectors import WordVectors  # noqa: PLC0415 (loads torch)

        del folder
        return WordVectors(self, vocabulary.words, vocabulary.vector_dim)


class TagSettings(PartSettings):
    """An embedding of the part-of-speech tags that come with the words."""

    dim: int = Field(default=25, ge=1)
    """Size of a tag's vector."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout on the tags' vectors."""
    min_count: int = Field(default=2, ge=1)
    """Less frequent tags of the training data are unknown, so that the vector of unknown tags is
    trained."""
    tagger: Literal["none", "penn", "universal"] = "none"
    """Tags that spaCy gives to sentences of the training and dev data without tags: those of the
    Penn Treebank, universal ones, or none."""

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add the frequent tags."""
        return replace(vocabulary, tags=frequent(counts.tags, self.min_count))

    def input(self, vocabulary: Vocabulary, folder: Path | None = None) -> TagInput:
        """The ids of tags."""
        del folder
        return TagInput(vocabulary.tags)

    def new_part(self, vocabulary: Vocabulary) -> Tags:
        """An embedding of the known tags."""
        from spandet.encoding.tags import Tags  # noqa: PLC0415 (loads torch)

        return Tags(self, vocabulary.tags)


class FusionSettings(Settings):
    """How the vectors of the parts become one vector per word; context words are not included."""

    kind: Literal["bilstm", "bigru", "none"] = "bilstm"
    """The recurrent network over the sentence; "none" has none."""
    dim: int = Field(default=0, ge=0)
    """Size of a word vector; 0 = that of the transformer, or 128 without one. With kind = "none",
    0 concatenates the vectors of the parts, and any other size adds a linear map."""
    layers: int = Field(default=1, ge=1)
    """Recurrent layers."""
    recurrent_dim: int = Field(default=0, ge=0, multiple_of=2)
    """Size of the recurrent output, both directions together; 0 = dim. Any other size adds a linear
    map to dim."""
    bypass: bool = False
    """Concatenate the transformer's vectors with the recurrent output instead of its input, and map
    both to dim."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout on the output of each recurrent layer."""
    norm: bool = False
    """Apply LayerNorm to the word vector."""
