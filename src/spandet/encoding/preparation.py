"""Preparation of sentences for an encoder: examples in, NumPy arrays out, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from spandet.encoding.examples import Example, together
from spandet.encoding.inputs import FormInput, PartInput, WordInput
from spandet.encoding.pieces import PieceMaker
from spandet.encoding.settings import EncoderSettings
from spandet.encoding.vocabulary import Vocabulary
from spandet.errors import FormatError, UsageError
from spandet.layers.layout import Sequences, padded_layout

VOCABULARY, TRANSFORMER = "vocabulary.json", "transformer"


@dataclass(frozen=True)
class Prepared:
    """Sentences as arrays. Items are the words of all sentences, one sentence after another."""

    mask: Bool[np.ndarray, "batch word"]
    places: Int[np.ndarray, " item"]
    """The position of each item in the flattened mask."""
    forms: Int[np.ndarray, " item"]
    """The number of each item among the distinct words of the batch."""
    parts: Mapping[str, Any]
    """The input of each part, by name."""
    sequences: Sequences | None
    """The layout of the items in the recurrent network of the fusion, if there is one."""


class Preparation:
    """Converts sentences to the input of an encoder."""

    def __init__(
        self, settings: EncoderSettings, vocabulary: Vocabulary, inputs: Mapping[str, PartInput]
    ) -> None:
        """Take the input of each part, by name."""
        self.settings = settings
        self.vocabulary = vocabulary
        self._inputs = inputs
        pieces = inputs.get(TRANSFORMER)
        self.pieces = pieces if isinstance(pieces, PieceMaker) else None

    @classmethod
    def from_files(cls, settings: EncoderSettings, folder: Path) -> Preparation:
        """Read vocabulary and pieces from the folder of a model.

        Raises:
            UsageError: a file is missing or damaged.
            FormatError: the vocabulary is damaged.
        """
        vocabulary, parts = read_vocabulary(folder), settings.parts.items()
        return cls(
            settings, vocabulary, {name: own.input(vocabulary, folder) for name, own in parts}
        )

    @property
    def context_words(self) -> int:
        """Maximum number of context words on each side that `prepare` can use."""
        if self.pieces and self.neighbour_sentences:
            return self.pieces.capacity
        return self.settings.transformer.context if self.settings.transformer else 0

    @property
    def neighbour_sentences(self) -> int:
        """Number of sentences of context on each side; 0: context is not counted in sentences."""
        return self.settings.transformer.neighbour_sentences if self.settings.transformer else 0

    @property
    def passage_words(self) -> int:
        """Maximum words of a passage, whose sentences are encoded together; 0: no passages."""
        return self.settings.transformer.passage if self.settings.transformer else 0

    @property
    def needs_tags(self) -> bool:
        """Whether a part needs part-of-speech tags."""
        return any(isinstance(own, WordInput) and own.needs_tags for own in self._inputs.values())

    def with_pieces(self, examples: Sequence[Example]) -> Sequence[Example]:
        """The examples with their sub-word pieces, which `sizes` and `prepare` use."""
        if self.pieces is None:
            return examples
        pieces = self.pieces.cut(examples)
        return [replace(one, pieces=own) for one, own in zip(examples, pieces, strict=True)]

    def sizes(self, examples: Sequence[Example]) -> list[int]:
        """The cost of each example: its pieces with context, or words without a transformer."""
        if self.pieces is not None:
            return self.pieces.sizes(examples)
        return [len(example.words) for example in examples]

    def together(self, examples: Sequence[Example]) -> list[list[int]]:
        """The numbers of examples that are encoded as one, and cost as much as one of them."""
        if self.passage_words:
            return together(examples)
        return [[number] for number in range(len(examples))]

    def prepare(self, examples: Sequence[Example]) -> Prepared:
        """Convert sentences to arrays."""
        lengths = [len(example.words) for example in examples]
        words = list(chain.from_iterable(example.words for example in examples))
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        forms = list(numbers)
        mask = np.arange(max(lengths, default=0)) < np.array(lengths, dtype=np.int64)[:, None]
        return Prepared(
            mask=mask,
            places=np.flatnonzero(mask),
            forms=np.array([numbers[word] for word in words], dtype=np.int64),
            parts={
                name: own.arrays(forms) if isinstance(own, FormInput) else own.arrays(examples)
                for name, own in self._inputs.items()
            },
            sequences=None if self.settings.fusion.kind == "none" else padded_layout(lengths),
        )


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the vocabulary of a saved model.

    Raises:
        UsageError: there is no encoder in the folder.
        FormatError: the file is damaged.
    """
    path = folder / VOCABULARY
    try:
        return Vocabulary.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FormatError("not a vocabulary (not UTF-8 text)", str(path)) from None
    except FormatError as error:
        raise error.at(str(path)) from None
