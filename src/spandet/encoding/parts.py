"""Base classes of the parts of an encoder: each part computes word vectors from one source.

A part is one file with a settings class (`PartSettings`) and a module (`FormPart` or `WordPart`),
and one field of `EncoderSettings`, the table of all parts.
"""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from spandet.config import Settings
from spandet.encoding.examples import Example
from spandet.encoding.vocabulary import Counts, Vocabulary


class EncoderPart(nn.Module):
    """A part of an encoder. Its parameters are found under the name of its settings."""

    dim: int
    """Size of its vectors."""
    needs_tags: ClassVar[bool] = False
    """Whether it needs part-of-speech tags."""

    def update(self, vocabulary: Vocabulary) -> Vocabulary:
        """The vocabulary to save, for parts that change it when they are built for training."""
        return vocabulary

    def save_files(self, folder: Path) -> None:
        """Write the files that the part needs besides the vocabulary and its weights."""


class FormPart(EncoderPart):
    """A part that sees nothing but the word: computed once per distinct word of a batch."""

    @abstractmethod
    def prepare(self, forms: Sequence[str]) -> Any:
        """Convert distinct words to tensors; `forward` computes "form dim" from them."""


class WordPart(EncoderPart):
    """A part that is computed for each word of each sentence."""

    @abstractmethod
    def prepare(self, examples: Sequence[Example]) -> Any:
        """Convert sentences to tensors; `forward` computes "item dim" from them."""


class PartSettings(Settings):
    """Settings of a part, which build it."""

    def add_names(self, vocabulary: Vocabulary, counts: Counts) -> Vocabulary:
        """Add the names in the training data that the part needs to a vocabulary."""
        del counts
        return vocabulary

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
