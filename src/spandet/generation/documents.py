"""Documents from the grammars: a title, an opening, and sentences that refer back to both."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import count, islice, repeat

from spandet.errors import UsageError
from spandet.generation import bio, clinic, news
from spandet.generation.grammar import Draft, Mark, Memory, Node, Phrase
from spandet.generation.layout import Layout, spelled
from spandet.generation.notation import Grammar, parse
from spandet.text import Document

MOST_WORDS = 30
"""No entity is longer."""
MOST_LEVELS = 4
"""No entity lies deeper; two labels on one span count as two levels."""


class Domain(StrEnum):
    """What the documents are about."""

    NEWS = "news"
    BIO = "bio"
    BOTH = "both"
    CLINIC = "clinic"
    """The only one with discontinuous entities."""


def generate(sentences: int, *, seed: int = 0, domain: str = Domain.BOTH) -> Iterator[Document]:
    """Invented documents with nested entities, one at a time, with `sentences` sentences in all.

    A document depends on its id and the seed alone: asking for more sentences only adds to the end
    (where a document may have been cut), and "both" takes turns between "news" and "bio". Entities
    in pieces are found in "clinic" only.

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

    def document(self, number: int, *, seed: int, most: int) -> Document:
        """Document `number` of the endless collection `seed`, cut after `most` sentences."""
        name = f"{self.domain}-{number:04d}"
        # Python promises the same numbers in every version for random() only: nothing else is used.
        chance = random.Random(f"{seed} {name}").random  # noqa: S311 (no secrets here)
        layout = Layout()
        for phrase in islice(self._sentences(chance), most):
            layout.add(phrase)
        return layout.document(name)

    def _sentences(self, chance: Callable[[], float]) -> Iterator[Phrase]:
        topic = self.topics[int(chance() * len(self.topics))]
        length = 2 + int(chance() * 8)
        memory = Memory()
        for kind in ("title", "opening", *repeat("body", length)):
            yield _sentence(self.grammar.rules[f"{topic}_{kind}"], chance, memory)


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
            document = writer.document(number, seed=seed, most=left)
            left -= len(document.sentences)
            yield document


def _sentence(rule: Node, chance: Callable[[], float], memory: Memory) -> Phrase:
    """Draw until no entity is too long or too deep; few are."""
    while True:
        draft = Draft(chance, memory)
        rule(draft)
        marks = sorted(draft.marks, key=_reading_order)
        if _fits(marks):
            return Phrase(spelled(draft.words), tuple(draft.tags), tuple(marks))


def _reading_order(mark: Mark) -> tuple[int, int, str, tuple[tuple[int, int], ...]]:
    return mark.start, -mark.end, mark.label, mark.pieces


def _fits(marks: Sequence[Mark]) -> bool:
    """Is every entity short and shallow enough? The marks come in reading order."""
    ends: list[int] = []  # of the entities around the present one
    for start, end, _, pieces in marks:
        if pieces:  # what lies in a gap is not inside
            continue
        while ends and ends[-1] <= start:
            ends.pop()
        ends.append(end)
        if end - start > MOST_WORDS or len(ends) > MOST_LEVELS:
            return False
    return True
