"""Inputs of the parts of an encoder: words to NumPy arrays, without torch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from jaxtyping import Int

from spandet.encoding.examples import Example
from spandet.layers.layout import Array, Sequences, packed_layout

FEATURES = 4
"""Hashed features of a word."""
_AFFIX = 3
_UNKNOWN, _END = 0, 1
_MAX_LENGTH = 64  # of a longer word, only its beginning and its end are used


class FormInput(ABC):
    """The input of a part that sees nothing but the word."""

    @abstractmethod
    def arrays(self, forms: Sequence[str]) -> Any:
        """Convert distinct words to an array, or to a dataclass of arrays."""


class WordInput(ABC):
    """The input of a part that is computed for each word of each sentence."""

    needs_tags: ClassVar[bool] = False
    """Whether it needs part-of-speech tags."""

    @abstractmethod
    def arrays(self, examples: Sequence[Example]) -> Any:
        """Convert sentences to an array, or to a dataclass of arrays."""


PartInput = FormInput | WordInput


@dataclass(frozen=True)
class CharacterBatch:
    """The characters of words, one word after another, with their end-of-word symbols."""

    ids: Int[Array, " character"]
    sequences: Sequences


class CharacterInput(FormInput):
    """The ids of the characters of words."""

    def __init__(self, characters: Sequence[str], *, end_sign: bool) -> None:
        self._ids = {character: number for number, character in enumerate(characters, start=2)}
        self._end = [_END] if end_sign else []

    def arrays(self, forms: Sequence[str]) -> CharacterBatch:
        """The ids of the words' characters."""
        half = _MAX_LENGTH // 2
        used = [word if len(word) <= _MAX_LENGTH else word[:half] + word[-half:] for word in forms]
        known = self._ids
        ids = [[*(known.get(letter, _UNKNOWN) for letter in word), *self._end] for word in used]
        ids = [own or [_END] for own in ids]  # an empty word must have a character, too
        flat = np.array(list(chain.from_iterable(ids)), dtype=np.int64)
        return CharacterBatch(flat, packed_layout([len(word) for word in ids]))


class HashedInput(FormInput):
    """The rows of the hashed features of words."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def arrays(self, forms: Sequence[str]) -> Int[np.ndarray, "form feature"]:
        """The row of each feature of each word."""
        hashes = np.array([hashes_of(word) for word in forms], dtype=np.int64)
        rows: np.ndarray = hashes.reshape(-1, FEATURES) % self._rows
        return rows + np.arange(FEATURES) * self._rows


class WordVectorInput(FormInput):
    """The rows of words in a table of vectors; row 0 is for words without a vector."""

    def __init__(self, words: Sequence[str]) -> None:
        self._ids = {word: number for number, word in enumerate(words, start=1)}

    def arrays(self, forms: Sequence[str]) -> Int[np.ndarray, " form"]:
        """The row of each word, or of its first spelling in other case that has one."""
        known = self._ids
        rows = [
            next((known[spelling] for spelling in spellings(word) if spelling in known), _UNKNOWN)
            for word in forms
        ]
        return np.array(rows, dtype=np.int64)


class TagInput(WordInput):
    """The ids of part-of-speech tags."""

    needs_tags = True

    def __init__(self, tags: Sequence[str]) -> None:
        self._ids: dict[str | None, int] = {tag: number for number, tag in enumerate(tags, start=1)}

    def arrays(self, examples: Sequence[Example]) -> Int[np.ndarray, " item"]:
        """The ids of the tags of all words, one sentence after another."""
        ids = [
            self._ids.get(tag, _UNKNOWN)
            for example in examples
            for tag in example.tags or [None] * len(example.words)
        ]
        return np.array(ids, dtype=np.int64)


@lru_cache(maxsize=1 << 16)
def hashes_of(word: str) -> tuple[int, ...]:
    """The hashes of a word's features, the same on every machine and in every run."""
    features = (word.lower(), word[:_AFFIX], word[-_AFFIX:], shape_of(word))
    return tuple(crc32(feature.encode("utf-8", "surrogatepass")) for feature in features)


def shape_of(word: str) -> str:
    """Characters by kind, at most two of one kind in a row: `IL-2` and `CD-4` are `XX-d`."""
    shape: list[str] = []
    for character in word:
        kind = _kind(character)
        if shape[-2:] != [kind, kind]:
            shape.append(kind)
    return "".join(shape)


def _kind(character: str) -> str:
    if character.isdigit():
        return "d"
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return character


def spellings(word: str) -> Iterator[str]:
    """A word and its spellings in other case, the most likely to have a vector first."""
    yield word
    lower = word.lower()
    yield lower
    yield lower.capitalize()
    yield word.upper()
