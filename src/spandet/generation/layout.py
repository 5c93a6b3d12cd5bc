"""Phrases to a text as people write it: capitals, "an", no space before a comma, a title line."""

from __future__ import annotations

from collections.abc import Iterable

from spandet.generation.grammar import Phrase
from spandet.text import CharSpan, Document, Entity, Sentence

_CLOSING = frozenset({",", ".", ":", ";", "?", "!", ")", "”", "'s"})
_OPENING = frozenset({"(", "“", "$"})
_SOUNDS_LIKE_A_CONSONANT = ("eu", "one", "uni", "us")


def spelled(words: Iterable[str]) -> tuple[str, ...]:
    """The words with "an" where "a" meets a vowel, and a capital at the beginning and in quotes."""
    written: list[str] = []
    previous = "“"
    for word in words:
        if previous == "“":
            written.append(_capitalised(word))
        else:
            if previous == "a" and _begins_with_a_vowel(word):
                written[-1] += "n"
            written.append(word)
        previous = word
    return tuple(written)


def _begins_with_a_vowel(word: str) -> bool:
    return word[0] in "aeiouAEIOU" and not word.lower().startswith(_SOUNDS_LIKE_A_CONSONANT)


def _capitalised(word: str) -> str:
    """A capital for an ordinary word, none for "p53" or "mRNA"."""
    ordinary = word.islower() and word.replace("-", "").isalpha()
    return word[0].upper() + word[1:] if ordinary else word


class Layout:
    """A document that grows by sentences; the first is its title."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._sentences: list[Sentence] = []
        self._entities: list[Entity[CharSpan]] = []

    def add(self, phrase: Phrase) -> None:
        """Set the next sentence."""
        words, tags, marks = phrase
        gap = ("", "\n\n", " ")[min(len(self._sentences), 2)]
        starts = []
        for word in words:
            if word in _CLOSING:
                gap = ""
            self._pieces += (gap, word)
            starts.append(self._length + len(gap))
            self._length += len(gap) + len(word)
            gap = "" if word in _OPENING else " "
        for start, end, label, pieces in marks:
            spans = [
                CharSpan(starts[first], starts[after - 1] + len(words[after - 1]))
                for first, after in pieces or ((start, end),)
            ]
            self._entities.append(Entity.from_fragments(spans, label))
        self._sentences.append(Sentence(words, tuple(starts), tags))

    def document(self, name: str) -> Document:
        """Everything that was set."""
        return Document(
            "".join(self._pieces),
            tuple(self._entities),
            name,
            own_sentences=tuple(self._sentences),
        )
