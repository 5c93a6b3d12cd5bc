"""The grammar engine: a grammar is a graph of nodes that write into the draft of a sentence.

`Words` and `Compound` write words; `Chain` and `Choice` join and choose; `Labelled` puts an entity
around what its node writes; `Fragment` marks a piece of entities that `Gathered` puts together;
`Remembered` writes the same thing in the whole document and `Initials` its short form. `notation`
builds such graphs from text.
"""

# ruff: noqa: D102 (what calling a node does is what its class says)

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, TypeAlias


class Mark(NamedTuple):
    """A label on the words start <= i < end."""

    start: int
    end: int
    label: str
    pieces: tuple[tuple[int, int], ...] = ()
    """Where the words of a discontinuous entity are, from left to right; empty for all others."""

    def moved(self, by: int) -> Mark:
        """The same on words that stand farther right."""
        pieces = tuple((start + by, end + by) for start, end in self.pieces)
        return Mark(self.start + by, self.end + by, self.label, pieces)


class Piece(NamedTuple):
    """Words of an entity that is still to be put together."""

    key: tuple[str, str]
    """Its label, and the letter that tells it from others with this label."""
    start: int
    end: int


class Phrase(NamedTuple):
    """Words with a tag each, and the labels on them."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(slots=True)
class Memory:
    """What a document has said before."""

    phrases: dict[str, Phrase] = field(default_factory=dict)
    chosen: set[Node] = field(default_factory=set)


class Draft:
    """A sentence in the making. All chance comes from `chance`, which draws from [0, 1)."""

    __slots__ = ("chance", "marks", "memory", "pieces", "tags", "words")

    def __init__(self, chance: Callable[[], float], memory: Memory) -> None:
        self.chance = chance
        self.memory = memory
        self.words: list[str] = []
        self.tags: list[str] = []
        self.marks: list[Mark] = []
        self.pieces: list[Piece] = []

    def add(self, phrase: Phrase) -> None:
        """Write a phrase at the end."""
        here = len(self.words)
        self.words += phrase.words
        self.tags += phrase.tags
        self.marks += [mark.moved(here) for mark in phrase.marks]

    def phrase(self) -> Phrase:
        """What was written."""
        return Phrase(tuple(self.words), tuple(self.tags), tuple(self.marks))


Node: TypeAlias = Callable[[Draft], None]
"""Writes at the end of a draft."""
Part: TypeAlias = Callable[[Draft], str]
"""Spells a part of a word, with the draft's chance."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Always the same words."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def __call__(self, draft: Draft) -> None:
        draft.words += self.words
        draft.tags += self.tags


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One node after the other."""

    nodes: tuple[Node, ...]

    def __call__(self, draft: Draft) -> None:
        for node in self.nodes:
            node(draft)


@dataclass(slots=True, eq=False)
class Choice:
    """One of its nodes, by weight; filled later, because rules mention each other."""

    nodes: Sequence[Node] = ()
    borders: Sequence[int] = ()

    def fill(self, nodes: Sequence[Node], weights: Sequence[int]) -> None:
        """Give it what it chooses from."""
        self.nodes = nodes
        self.borders = tuple(accumulate(weights))

    def choose(self, draft: Draft) -> Node:
        """The node that chance finds."""
        return self.nodes[bisect_right(self.borders, draft.chance() * self.borders[-1])]

    def __call__(self, draft: Draft) -> None:
        self.choose(draft)(draft)


class FreshChoice(Choice):
    """A choice that avoids what it has chosen before in the document."""

    def __call__(self, draft: Draft) -> None:
        chosen = draft.memory.chosen
        node = self.choose(draft)
        for _ in range(10):  # then there is hardly anything left
            if node not in chosen:
                break
            node = self.choose(draft)
        chosen.add(node)
        node(draft)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An entity around what a node writes; several labels share its span."""

    labels: tuple[str, ...]
    node: Node

    def __call__(self, draft: Draft) -> None:
        start = len(draft.words)
        self.node(draft)
        end = len(draft.words)
        draft.marks += [Mark(start, end, label) for label in self.labels]


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """What its node writes is a piece of one entity per letter."""

    label: str
    letters: str
    node: Node

    def __call__(self, draft: Draft) -> None:
        start = len(draft.words)
        self.node(draft)
        end = len(draft.words)
        draft.pieces += [Piece((self.label, letter), start, end) for letter in self.letters]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Puts the pieces that its node writes together; letters mean nothing outside."""

    node: Node

    def __call__(self, draft: Draft) -> None:
        outside, draft.pieces = draft.pieces, []
        self.node(draft)
        groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for key, start, end in sorted(draft.pieces, key=lambda piece: piece.start):
            groups.setdefault(key, []).append((start, end))
        for (label, _), own in groups.items():
            draft.marks.append(Mark(own[0][0], own[-1][1], label, tuple(own)))
        draft.pieces = outside


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """What its node wrote the first time, in every sentence of a document."""

    key: str
    node: Node

    def recall(self, draft: Draft) -> Phrase:
        """The phrase, drawn now if the document does not know it yet."""
        known = draft.memory.phrases.get(self.key)
        if known is None:
            fresh = Draft(draft.chance, draft.memory)
            self.node(fresh)
            known = draft.memory.phrases[self.key] = fresh.phrase()
        return known

    def __call__(self, draft: Draft) -> None:
        draft.add(self.recall(draft))


@dataclass(frozen=True, slots=True, eq=False)
class Initials:
    """The acronym of a remembered phrase: "National Reform Party" becomes "NRP"."""

    phrase: Remembered

    def __call__(self, draft: Draft) -> None:
        known = self.phrase.recall(draft)
        draft.words.append("".join([word[0].upper() for word in known.words]))
        draft.tags.append(known.tags[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Compound:
    """One word put together from parts."""

    parts: tuple[Part, ...]
    tag: str

    def __call__(self, draft: Draft) -> None:
        draft.words.append("".join([part(draft) for part in self.parts]))
        draft.tags.append(self.tag)


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """Always the same letters."""

    letters: str

    def __call__(self, draft: Draft) -> str:  # noqa: ARG002 (it needs no chance)
        return self.letters


@dataclass(frozen=True, slots=True, eq=False)
class PartChain:
    """One part after the other."""

    parts: tuple[Part, ...]

    def __call__(self, draft: Draft) -> str:
        return "".join([part(draft) for part in self.parts])


@dataclass(slots=True, eq=False)
class PartChoice:
    """One of its parts, all equally likely; filled later, because parts mention each other."""

    parts: Sequence[Part] = ()

    def __call__(self, draft: Draft) -> str:
        return self.parts[int(draft.chance() * len(self.parts))](draft)
