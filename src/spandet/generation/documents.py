"""Documents from the grammars: a title, an opening and a body; sentences to text and entities."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import count, islice, repeat

from spandet.errors import UsageError
from spandet.generation import bio, clinic, news
from spandet.generation.grammar import Draft, Mark, Memory, Node, Phrase
from spandet.generation.notation import Grammar, parse
from spandet.text import CharSpan, Document, Entity, Sentence

MAX_WORDS = 30
"""Maximum length of an entity."""
MAX_LEVELS = 4
"""Maximum nesting depth; two labels on one span count as two levels."""

_CLOSING = frozenset({",", ".", ":", ";", "?", "!", ")", "”", "'s"})
_OPENING = frozenset({"(", "“", "$"})
_SOUNDS_LIKE_A_CONSONANT = ("eu", "one", "uni", "us")


class Domain(StrEnum):
    """The domain of the documents."""

    NEWS = "news"
    BIO = "bio"
    BOTH = "both"
    CLINIC = "clinic"
    """The only domain with discontinuous entities."""


def generate(sentences: int, *, seed: int = 0, domain: str = Domain.BOTH) -> Iterator[Document]:
    """Generate synthetic documents with nested entities, with `sentences` sentences in all.

    A document depends only on its id and the seed: more sentences only extend the stream (its last
    document may be cut), and "both" alternates between "news" and "bio". Only "clinic" has
    discontinuous entities.

    Raises:
        UsageError: a negative number of sentences, or an unknown domain.
    """
    if sentences < 0:
        raise UsageError(f"the number of sentences must be 0 or more, not {sentences}")
    if domain not in list(Domain):
        raise UsageError(f"the domain must be one of {', '.join(Domain)}, not {domain!r}")
    both = (Domain.NEWS, Domain.BIO)
    chosen = both if domain == Domain.BOTH else (Domain(domain),)
    return _stream(sentences, seed, [_writer(one) for one in chosen])


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the documents of one domain."""

    domain: Domain
    topics: Sequence[str]
    grammar: Grammar

    def document(self, number: int, *, seed: int, max_sentences: int) -> Document:
        """Document `number` of the infinite stream `seed`, cut after `max_sentences`."""
        name = f"{self.domain}-{number:04d}"
        # Only random(), whose numbers Python guarantees to be the same in all versions.
        draw = random.Random(f"{seed} {name}").random  # noqa: S311 (not for security)
        layout = Layout()
        for phrase in islice(self._sentences(draw), max_sentences):
            layout.add(phrase)
        return layout.document(name)

    def _sentences(self, draw: Callable[[], float]) -> Iterator[Phrase]:
        topic = self.topics[int(draw() * len(self.topics))]
        length = 2 + int(draw() * 8)
        memory = Memory()
        for kind in ("title", "opening", *repeat("body", length)):
            yield _sentence(self.grammar.rules[f"{topic}_{kind}"], draw, memory)


@cache
def _writer(domain: Domain) -> _Writer:
    source = {Domain.NEWS: news, Domain.BIO: bio, Domain.CLINIC: clinic}[domain]
    return _Writer(domain, source.TOPICS, parse(source.GRAMMAR))


def _stream(sentences: int, seed: int, writers: Sequence[_Writer]) -> Iterator[Document]:
    left = sentences
    for number in count(1):
        for writer in writers:
            if left == 0:
                return
            document = writer.document(number, seed=seed, max_sentences=left)
            left -= len(document.sentences)
            yield document


def _sentence(rule: Node, draw: Callable[[], float], memory: Memory) -> Phrase:
    """Draw sentences until no entity is too long or nested too deep, which is rare."""
    while True:
        draft = Draft(draw, memory)
        rule(draft)
        marks = sorted(draft.marks, key=_reading_order)
        if _fits(marks):
            return Phrase(spelled(draft.words), tuple(draft.tags), tuple(marks))


def _reading_order(mark: Mark) -> tuple[int, int, str, tuple[tuple[int, int], ...]]:
    return mark.start, -mark.end, mark.label, mark.fragments


def _fits(marks: Sequence[Mark]) -> bool:
    """Whether no entity is too long or nested too deep; the marks are in reading order."""
    ends: list[int] = []  # of the entities around the current one
    for start, end, _, fragments in marks:
        if fragments:  # entities in its gaps are not nested in it
            continue
        while ends and ends[-1] <= start:
            ends.pop()
        ends.append(end)
        if end - start > MAX_WORDS or len(ends) > MAX_LEVELS:
            return False
    return True


def spelled(words: Iterable[str]) -> tuple[str, ...]:
    """The words with "an" before vowels, and a capital at the beginning and after a quote."""
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
    """A capital for an ordinary word, but not for "p53" or "mRNA"."""
    ordinary = word.islower() and word.replace("-", "").isalpha()
    return word[0].upper() + word[1:] if ordinary else word


class Layout:
    """Builds the text of a document from sentences; the first is its title."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self._sentences: list[Sentence] = []
        self._entities: list[Entity[CharSpan]] = []

    def add(self, phrase: Phrase) -> None:
        """Append a sentence."""
        words, tags, marks = phrase
        gap = ("", "\n\n", " ")[min(len(self._sentences), 2)]
        starts = []
        for word in words:
            if word in _CLOSING:
                gap = ""
            self._texts += (gap, word)
            starts.append(self._length + len(gap))
            self._length += len(gap) + len(word)
            gap = "" if word in _OPENING else " "
        for start, end, label, fragments in marks:
            spans = [
                CharSpan(starts[first], starts[after - 1] + len(words[after - 1]))
                for first, after in fragments or ((start, end),)
            ]
            self._entities.append(Entity.from_fragments(spans, label))
        self._sentences.append(Sentence(words, tuple(starts), tags))

    def document(self, name: str) -> Document:
        """The document so far."""
        return Document(
            "".join(self._texts),
            tuple(self._entities),
            name,
            own_sentences=tuple(self._sentences),
        )
