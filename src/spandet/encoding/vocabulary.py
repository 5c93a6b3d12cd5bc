"""The vocabulary of an encoder: characters, tags and words of its training data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import chain

from spandet.encoding.examples import Example
from spandet.errors import FormatError


@dataclass(frozen=True)
class Counts:
    """How often words, characters and tags occur in the training data."""

    words: Counter[str] = field(default_factory=Counter)
    characters: Counter[str] = field(default_factory=Counter)
    """The words that contain a character."""
    tags: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Counts:
        """Count the examples' own words, without their context."""
        counts = cls()
        for example in examples:
            counts.words.update(example.words)
            counts.tags.update(example.tags)
        for word, count in counts.words.items():
            counts.characters.update(dict.fromkeys(word, count))
        return counts


def frequent(counts: Counter[str], min_count: int) -> tuple[str, ...]:
    """The names that occur at least so often, sorted."""
    return tuple(sorted(name for name, count in counts.items() if count >= min_count))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Sorted names without repetition; any other name is unknown. The parts number them."""

    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Words of the training data; once the word vectors are read, the words that have one."""
    vector_dim: int = 0
    """Size of the word vectors; 0 before they are read."""

    def to_json(self) -> str:
        """As text; characters outside ASCII are escaped, so that lone surrogates survive."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Parse the output of `to_json`.

        Raises:
            FormatError: the text is not a vocabulary.
        """
        try:
            values = json.loads(text)
            names = {key: tuple(values[key]) for key in ("characters", "tags", "words")}
            vocabulary = cls(**names, vector_dim=int(values["vector_dim"]))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise FormatError(f"not a vocabulary ({error!r})") from None
        if not all(isinstance(name, str) for name in chain(*names.values())):
            raise FormatError("not a vocabulary (a name is not a string)")
        return vocabulary
