"""Base classes of the parts of an encoder: each part computes word vectors from one source.

A part has settings (`PartSettings`), an input (`FormInput` or `WordInput`), which converts words to
NumPy arrays, a module (`FormPart` or `WordPart`), and one field of `EncoderSettings`, the table of
all parts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from spandet.encoding.examples import Example
from spandet.encoding.inputs import FormInput, WordInput
from spandet.encoding.vocabulary import Vocabulary
from spandet.tensors import to_tensors


class EncoderPart(nn.Module):
    """A part of an encoder. Its parameters are found under the name of its settings."""

    dim: int
    """Size of its vectors."""

    def update(self, vocabulary: Vocabulary) -> Vocabulary:
        """The vocabulary to save, for parts that change it when they are built for training."""
        return vocabulary

    def save_files(self, folder: Path) -> None:
        """Write the files that the part needs besides the vocabulary and its weights."""


class FormPart(EncoderPart):
    """A part that sees nothing but the word: computed once per distinct word of a batch."""

    input: FormInput

    def prepare(self, forms: Sequence[str]) -> Any:
        """Convert distinct words to tensors; `forward` computes "form dim" from them."""
        return to_tensors(self.input.arrays(forms))


class WordPart(EncoderPart):
    """A part that is computed for each word of each sentence."""

    input: WordInput

    def prepare(self, examples: Sequence[Example]) -> Any:
        """Convert sentences to tensors; `forward` computes "item dim" from them."""
        return to_tensors(self.input.arrays(examples))
