"""The grammar engine: a grammar is a graph of nodes that append words to the draft of a sentence.

`Words` and `Compound` write words; `Chain` and `Choice` combine other nodes; `Labelled` adds an
entity with the words of its node; `Fragment` adds a fragment of entities, and `JoinFragments` makes
entities of the fragments; `Remembered` writes the same words everywhere in a document, and
`Initials` their acronym. `notation` builds such graphs from text.
"""

# ruff: noqa: D102 (the docstring of a node's class describes its call)

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
    fragments: tuple[tuple[int, int], ...] = ()
    """The fragments of a discontinuous entity, from left to right; empty for all others."""

    def shifted(self, by: int) -> Mark:
        """The same mark, `by` words farther right."""
        fragments = tuple((start + by, end + by) for start, end in self.fragments)
        return Mark(self.start + by, self.end + by, self.label, fragments)


class OpenFragment(NamedTuple):
    """A fragment of an entity that is not joined yet."""

    key: tuple[str, str]
    """The label of the entity, and the letter that distinguishes entities with this label."""
    start: int
    end: int


class Phrase(NamedTuple):
    """Words with a tag each, and the labels on them."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(slots=True)
class Memory:
    """The phrases and choices of the document so far."""

    phrases: dict[str, Phrase] = field(default_factory=dict)
    chosen: set[Node] = field(default_factory=set)


class Draft:
    """An unfinished sentence. `draw` is the random generator: it returns numbers in [0, 1)."""

    __slots__ = ("draw", "fragments", "marks", "memory", "tags", "words")

    def __init__(self, draw: Callable[[], float], memory: Memory) -> None:
        self.draw = draw
        self.memory = memory
        self.words: list[str] = []
        self.tags: list[str] = []
        self.marks: list[Mark] = []
        self.fragments: list[OpenFragment] = []

    def add(self, phrase: Phrase) -> None:
        """Append a phrase."""
        here = len(self.words)
        self.words += phrase.words
        self.tags += phrase.tags
        self.marks += [mark.shifted(here) for mark in phrase.marks]

    def phrase(self) -> Phrase:
        """The words, tags and marks so far."""
        return Phrase(tuple(self.words), tuple(self.tags), tuple(self.marks))


Node: TypeAlias = Callable[[Draft], None]
"""Appends words to a draft."""
WordPart: TypeAlias = Callable[[Draft], str]
"""Returns a part of a word, with the random generator of the draft."""


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
    """One of its nodes, drawn by weight; filled later, because rules refer to each other."""

    nodes: Sequence[Node] = ()
    borders: Sequence[int] = ()

    def fill(self, nodes: Sequence[Node], weights: Sequence[int]) -> None:
        """Set the nodes and their weights."""
        self.nodes = nodes
        self.borders = tuple(accumulate(weights))

    def choose(self, draft: Draft) -> Node:
        """Draw a node."""
        return self.nodes[bisect_right(self.borders, draft.draw() * self.borders[-1])]

    def __call__(self, draft: Draft) -> None:
        self.choose(draft)(draft)


class FreshChoice(Choice):
    """A choice that avoids the nodes it has chosen before in the document."""

    def __call__(self, draft: Draft) -> None:
        chosen = draft.memory.chosen
        node = self.choose(draft)
        for _ in range(10):  # then there are hardly any unused nodes left
            if node not in chosen:
                break
            node = self.choose(draft)
        chosen.add(node)
        node(draft)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An entity with the words of its node; several labels share the span."""

    labels: tuple[str, ...]
    node: Node

    def __call__(self, draft: Draft) -> None:
        start = len(draft.words)
        self.node(draft)
        end = len(draft.words)
        draft.marks += [Mark(start, end, label) for label in self.labels]


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A fragment with the words of its node, of one entity per letter."""

    label: str
    letters: str
    node: Node

    def __call__(self, draft: Draft) -> None:
        start = len(draft.words)
        self.node(draft)
        end = len(draft.words)
        draft.fragments += [
            OpenFragment((self.label, letter), start, end) for letter in self.letters
        ]


@dataclass(frozen=True, slots=True, eq=False)
class JoinFragments:
    """Joins the fragments that its node writes to entities; letters are local to the node."""

    node: Node

    def __call__(self, draft: Draft) -> None:
        outside, draft.fragments = draft.fragments, []
        self.node(draft)
        groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for key, start, end in sorted(draft.fragments, key=lambda each: each.start):
            groups.setdefault(key, []).append((start, end))
        for (label, _), own in groups.items():
            draft.marks.append(Mark(own[0][0], own[-1][1], label, tuple(own)))
        draft.fragments = outside


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """Writes the words that its node wrote the first time in the document."""

    key: str
    node: Node

    def recall(self, draft: Draft) -> Phrase:
        """The phrase, drawn now if it does not exist in the document yet."""
        known = draft.memory.phrases.get(self.key)
        if known is None:
            fresh = Draft(draft.draw, draft.memory)
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
    """One word, composed of parts."""

    parts: tuple[WordPart, ...]
    tag: str

    def __call__(self, draft: Draft) -> None:
        draft.words.append("".join([part(draft) for part in self.parts]))
        draft.tags.append(self.tag)


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """Always the same letters."""

    letters: str

    def __call__(self, draft: Draft) -> str:  # noqa: ARG002 (draws nothing)
        return self.letters


@dataclass(frozen=True, slots=True, eq=False)
class WordPartChain:
    """One part after the other."""

    parts: tuple[WordPart, ...]

    def __call__(self, draft: Draft) -> str:
        return "".join([part(draft) for part in self.parts])


@dataclass(slots=True, eq=False)
class WordPartChoice:
    """One of its parts, all equally likely; filled later, because parts refer to each other."""

    parts: Sequence[WordPart] = ()

    def __call__(self, draft: Draft) -> str:
        return self.parts[int(draft.draw() * len(self.parts))](draft)
