"""Parser for the notation of grammars: lines of text to a graph of nodes.

    # A comment. Lines that begin with a space continue a definition.
    tag VBD = said met                  words of the rules with their part of speech, once
    weekday/NNP = Monday Tuesday        a list of words, all of one part of speech
    stem- = Hal Mar                     parts of words
    town- = {stem-}ton {stem-}bury      parts may be composed
    mayor =                             a rule: alternatives after bars, a number is a weight
        |3 <role mayor of <place {town-}/NNP>>
        | <person+role the mayor>       two labels on one span
    pain =                              fragments with the same letter are one entity:
        | <ill:a left> and <ill right <ill:a arm>>      "left … arm" and "right arm"
        | <ill:ab arms> are <ill:a stiff> or <ill:b sore>    "arms … stiff" and "arms … sore"
    opening* =                          a starred rule avoids repetition in a document
        | {mayor@hero} met {mayor@rival} on {weekday} .

`{rule@key}` writes the same words wherever a document uses that rule with that key, and
`{^rule@key}` writes their initials. The letters of fragments are local to their alternative.
Function words, punctuation and digits have known tags, capitalised words are proper nouns, and any
other word needs a `tag` line or its tag with a slash: visit/VB.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spandet.generation.grammar import (
    Chain,
    Choice,
    Compound,
    Fragment,
    FreshChoice,
    Initials,
    JoinFragments,
    Labelled,
    Letters,
    Node,
    Remembered,
    WordPart,
    WordPartChain,
    WordPartChoice,
    Words,
)

_CLOSED_CLASS = {
    ",": ",",
    ".": ". ? !",
    ":": ": ;",
    "``": "“",
    "''": "”",
    "-LRB-": "(",
    "-RRB-": ")",
    "$": "$",
    "POS": "'s",
    "DT": "the a an all both no any each every this these those some another",
    "IN": "of in on at for by with from into about after before during between against under over "
    "near since until through without within among across behind than as because if while "
    "although whether despite that per",
    "TO": "to",
    "CC": "and or but nor &",
    "PRP": "it they we he she them us him her",
    "PRP$": "its their our his",
    "MD": "will would could may might must should can cannot",
    "WDT": "which",
    "WP": "who what",
    "WRB": "when where how why",
    "EX": "there",
    "RB": "not also only still now never again",
    "VBZ": "is has does",
    "VBP": "are have do",
    "VBD": "was were had did",
    "VB": "be",
    "VBN": "been",
    "CD": "one two three four five six seven eight nine ten",
}
_ITEM = re.compile(r"<[\w+:]+|>|[^\s<>]+")
_REFERENCE = re.compile(r"\{(?P<initials>\^?)(?P<name>\w+)(?:@(?P<key>\w+))?\}")
_TAGGED = re.compile(r"(?P<word>.+)/(?P<tag>[A-Z$]+)")
_WORD_PART = re.compile(r"\{(?P<name>\w+-)\}|(?P<letters>[^{}]+)")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules by name, and the names of the rules that no other rule uses."""

    rules: Mapping[str, Node]
    unused: frozenset[str]


def parse(text: str) -> Grammar:
    """Read a grammar.

    Raises:
        ValueError: a rule is not defined, or a word has no tag.
    """
    return _Parser(text).grammar()


class _Parser:
    """Two passes: first every rule gets an empty node, then the nodes are filled and connected."""

    def __init__(self, text: str) -> None:
        self.tags = {word: tag for tag, words in _CLOSED_CLASS.items() for word in words.split()}
        self.choices: dict[str, Choice] = {}
        self.parts: dict[str, WordPartChoice] = {}
        self.used: set[str] = set()
        self.bodies = _definitions(text)
        self.head = ""
        """The name of the current definition, for errors."""

    def grammar(self) -> Grammar:
        for head, body in self.bodies.items():
            self._declare(head, body)
        for head, body in self.bodies.items():
            self.head = head
            self._define(head, body)
        return Grammar(self.choices, frozenset({*self.choices, *self.parts} - self.used))

    def _declare(self, head: str, body: str) -> None:
        name = head.partition("/")[0]
        if name.startswith("tag "):
            self.tags |= dict.fromkeys(body.split(), name.removeprefix("tag "))
        elif name.endswith("-"):
            self.parts[name] = WordPartChoice()
        elif name.endswith("*"):
            self.choices[name[:-1]] = FreshChoice()
        else:
            self.choices[name] = Choice()

    def _define(self, head: str, body: str) -> None:
        name, _, tag = head.removesuffix("*").partition("/")
        if name in self.parts:
            self.parts[name].parts = [self._part(word) for word in body.split()]
        elif tag:
            nodes = [self._word(f"{word}/{tag}") for word in body.split()]
            self.choices[name].fill(nodes, [1] * len(nodes))
        elif name in self.choices:
            nodes, weights = self._alternatives(body)
            self.choices[name].fill(nodes, weights)

    def _alternatives(self, body: str) -> tuple[list[Node], list[int]]:
        before, *bars = re.split(r"\|(\d*)", body)
        if before.strip() or not bars:
            raise self._error(f"the bar is missing before {body.strip()!r}")
        nodes = [self._alternative(_ITEM.findall(bar)) for bar in bars[1::2]]
        return nodes, [int(weight or 1) for weight in bars[::2]]

    def _alternative(self, items: list[str]) -> Node:
        letters = Counter(
            (label, letter)
            for label, _, own in (item[1:].partition(":") for item in items if item[0] == "<")
            for letter in own
        )
        for (label, letter), count in letters.items():
            if count < 2:
                raise self._error(f"<{label}:{letter} is a single fragment")
        node = self._chain(iter(items))
        return JoinFragments(node) if letters else node

    def _chain(self, items: Iterator[str], *, inside: str = "") -> Node:
        """The items up to the end, or up to the bracket that closes `inside`."""
        nodes: list[Node] = []
        for item in items:
            if item == ">":
                if not inside:
                    raise self._error("a > without an open bracket")
                return _joined(nodes)
            nodes.append(self._node(item, items))
        if inside:
            raise self._error(f"{inside} is not closed")
        return _joined(nodes)

    def _node(self, item: str, rest: Iterator[str]) -> Node:
        if item.startswith("<"):
            label, _, letters = item[1:].partition(":")
            node = self._chain(rest, inside=item)
            return Fragment(label, letters, node) if letters else _labelled(label, node)
        reference = _REFERENCE.fullmatch(item)
        return self._word(item) if reference is None else self._reference(**reference.groupdict())

    def _reference(self, initials: str, name: str, key: str | None) -> Node:
        choice = self.choices.get(name)
        if choice is None:
            raise self._error(f"{name!r} is not defined")
        self.used.add(name)
        if key is None:
            return choice
        remembered = Remembered(f"{name}@{key}", choice)
        return Initials(remembered) if initials else remembered

    def _word(self, item: str) -> Node:
        tagged = _TAGGED.fullmatch(item)
        word, tag = (tagged["word"], tagged["tag"]) if tagged else (item, self._tag(item))
        return Compound(self._word_parts(word), tag) if "{" in word else Words((word,), (tag,))

    def _tag(self, word: str) -> str:
        if word in self.tags:
            return self.tags[word]
        if word[0].isdigit():
            return "CD"
        if word[0].isupper():
            return "NNP"
        raise self._error(f"the word {word!r} has no tag")

    def _part(self, word: str) -> WordPart:
        parts = self._word_parts(word)
        return parts[0] if len(parts) == 1 else WordPartChain(parts)

    def _word_parts(self, word: str) -> tuple[WordPart, ...]:
        matches = list(_WORD_PART.finditer(word))
        if "".join(match.group() for match in matches) != word:
            raise self._error(f"{word!r} is not made of letters and {{parts-}}")
        return tuple(self._word_part(**match.groupdict()) for match in matches)

    def _word_part(self, name: str | None, letters: str) -> WordPart:
        if name is None:
            return Letters(letters)
        if name not in self.parts:
            raise self._error(f"{name!r} is not defined")
        self.used.add(name)
        return self.parts[name]

    def _error(self, what: str) -> ValueError:
        return ValueError(f"rule {self.head!r}: {what}")


def _definitions(text: str) -> dict[str, str]:
    """The body of each definition by its head; `tag` lines with the same tag are joined."""
    bodies: dict[str, str] = {}
    without_comments = re.sub(r"(?m)^#.*\n", "", text).strip()
    for block in re.split(r"\n+(?=\S)", without_comments):
        head, equals, body = block.partition(" =")
        if not equals:
            raise ValueError(f"{block!r} is not a definition: expected name = ...")
        if head in bodies and not head.startswith("tag "):
            raise ValueError(f"rule {head!r} is defined twice")
        bodies[head] = bodies.get(head, "") + body
    return bodies


def _labelled(labels: str, node: Node) -> Node:
    return Labelled(tuple(labels.split("+")), node)


def _joined(nodes: list[Node]) -> Node:
    """The nodes as one; neighbouring words become one node, for speed."""
    merged: list[Node] = []
    for node in nodes:
        last = merged[-1] if merged else None
        if isinstance(node, Words) and isinstance(last, Words):
            merged[-1] = Words(last.words + node.words, last.tags + node.tags)
        else:
            merged.append(node)
    return merged[0] if len(merged) == 1 else Chain(tuple(merged))
