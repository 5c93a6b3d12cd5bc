"""What a trained encoder knows by name: characters, tags and words of its training data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain

from spandet.encoding.examples import Example
from spandet.encoding.settings import EncoderSettings
from spandet.errors import FormatError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Sorted names without repetition. Ids are up to the parts; what is not here is unknown."""

    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Words of the training data; once the word vectors are read, the words that have one."""
    vector_dim: int = 0
    """Size of the word vectors; 0 before they are read."""

    @classmethod
    def from_examples(cls, examples: Iterable[Example], settings: EncoderSettings) -> Vocabulary:
        """What the parts that are switched on need to know of the training data."""
        words: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
            tags.update(example.tags)
        characters: Counter[str] = Counter()
        for word, count in words.items():
            characters.update(dict.fromkeys(word, count))
        return cls(
            _frequent(characters, settings.characters.min_count) if settings.characters else (),
            _frequent(tags, settings.tags.min_count) if settings.tags else (),
            tuple(sorted(words)) if settings.word_vectors else (),
        )

    def to_json(self) -> str:
        """As text; characters outside ASCII are escaped, so that lone surrogates survive."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """What `to_json` wrote.

        Raises:
            FormatError: it is something else.
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


def _frequent(counts: Counter[str], least: int) -> tuple[str, ...]:
    return tuple(sorted(name for name, count in counts.items() if count >= least))
