"""Entities as one tag per word: BIO (IOB2), IOB1, BIOES (IOBES), BMES and BILOU.

           IL-2    receptor  gene   binds  STAT5
    BIO    B-DNA   I-DNA     I-DNA  O      B-protein
    IOB1   I-DNA   I-DNA     I-DNA  O      I-protein   B- only after a neighbour of the same label
    BIOES  B-DNA   I-DNA     E-DNA  O      S-protein
    BMES   B-DNA   M-DNA     E-DNA  O      S-protein

The scheme is detected in reading. A sentence with one of E M S L U is in a scheme that marks ends,
and must be valid in it. In all others, a tag begins an entity if it is B or if the word before has
another label, which is right for the valid sequences of both BIO and IOB1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spandet.errors import FormatError
from spandet.formats.records import shown
from spandet.text import Entity, WordRow, WordSpan

SplitTag = tuple[str, str]
"""Prefix and label of a tag; the label of O is empty."""
ErrorAt = Callable[[int, str], FormatError]

_OUTSIDE: SplitTag = ("O", "")
_TAG = re.compile(r"O|([BIESMLU])-(.+)", re.DOTALL)
_MARKS_ENDS = frozenset("ESMLU")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The prefixes of an entity's words, by their position in the entity."""

    first: str
    middle: str
    last: str
    single: str

    def prefixes(self, length: int) -> list[str]:
        """One prefix for each word of an entity."""
        if length == 1:
            return [self.single]
        return [self.first, *[self.middle] * (length - 2), self.last]


SCHEMES = {
    "bio": Scheme(first="B", middle="I", last="I", single="B"),
    "iob1": Scheme(first="I", middle="I", last="I", single="I"),
    "bioes": Scheme(first="B", middle="I", last="E", single="S"),
    "bmes": Scheme(first="B", middle="M", last="E", single="S"),
}


def decode(tags: Sequence[str], error: ErrorAt) -> list[Entity[WordSpan]]:
    """Decode the tags of a sentence to entities, from left to right.

    Args:
        tags: One tag per word.
        error: Makes the error for a word's number and what is wrong with its tag.
    """
    if tags.count("O") == len(tags):
        return []
    try:
        split = list(map(_split, tags))
    except FormatError as bad:
        word = next(word for word, tag in enumerate(tags) if not _TAG.fullmatch(tag))
        raise error(word, bad.what) from None
    if _MARKS_ENDS.isdisjoint([prefix for prefix, _ in split]):
        return _decode_begins(split)
    return _decode_ends(split, error)


def encode(length: int, entities: Iterable[Entity[WordSpan]], scheme: Scheme) -> list[str]:
    """Encode entities that do not overlap, from left to right, as one tag per word."""
    tags = ["O"] * length
    for entity in entities:
        start, end, label = entity.span.start, entity.span.end, entity.label
        prefixes = scheme.prefixes(end - start)
        tags[start:end] = [f"{prefix}-{label}" for prefix in prefixes]
        if start and tags[start] == f"I-{label}" and tags[start - 1][2:] == label:
            tags[start] = f"B-{label}"  # in IOB1, only B separates neighbours of the same label
    return tags


def layers(row: WordRow, *, most: int, holder: str) -> list[list[Entity[WordSpan]]]:
    """Split the entities of a sentence by depth: outermost first, each layer from left to right.

    Raises:
        FormatError: two cross, one is discontinuous, or they nest deeper than `most` layers.
    """
    found: list[list[Entity[WordSpan]]] = [[] for _ in range(most)]
    around: list[Entity[WordSpan]] = []
    for entity in sorted(row.entities, key=lambda one: (one.span.start, -one.span.end)):
        if entity.fragments:
            raise FormatError(f"{_named(row, entity)} is discontinuous, {_cannot(holder)}")
        while around and around[-1].span.end <= entity.span.start:
            around.pop()
        around.append(entity)
        if len(around) > most:
            chain = " overlaps ".join(_named(row, one) for one in around)
            raise FormatError(f"{chain}, {_cannot(holder)}")
        if len(around) > 1 and entity.span.crosses(around[-2].span):
            pair = f"{_named(row, around[-2])} crosses {_named(row, entity)}"
            raise FormatError(f"{pair}, {_cannot(holder)}")
        found[len(around) - 1].append(entity)
    return found


@lru_cache(maxsize=4096)
def _split(tag: str) -> SplitTag:
    found = _TAG.fullmatch(tag)
    if found is None:
        expected = "O, or one of B I E S M L U with a dash and a label"
        raise FormatError(f"the tag is {shown(tag)}, expected {expected}")
    return found[1] or "O", found[2] or ""


def _decode_begins(tags: Sequence[SplitTag]) -> list[Entity[WordSpan]]:
    """Decode a scheme that does not mark ends: BIO, IOB1."""
    found = []
    start, current = 0, ""
    for word, (prefix, label) in enumerate([*tags, _OUTSIDE]):
        if label != current or prefix == "B":
            if current:
                found.append(Entity(WordSpan(start, word), current))
            start, current = word, label
    return found


def _decode_ends(tags: Sequence[SplitTag], error: ErrorAt) -> list[Entity[WordSpan]]:
    """Decode a scheme that marks ends: BIOES, BMES, BILOU."""
    found = []
    start, current = 0, ""
    for word, (prefix, label) in enumerate(tags):
        if prefix in "IMEL" and label != current:
            raise error(word, f"the tag is {prefix}-{label}, but no {label} entity is open here")
        if prefix in "BSUO" and current:
            tag = f"{prefix}-{label}" if label else "O"
            raise error(word, f"the tag is {tag}, but the {current} entity before has no end")
        if prefix in "SU":
            found.append(Entity(WordSpan(word, word + 1), label))
        elif prefix == "B":
            start, current = word, label
        elif prefix in "EL":
            found.append(Entity(WordSpan(start, word + 1), current))
            current = ""
    if current:
        raise error(len(tags) - 1, f"the sentence ends, but its last {current} entity does not")
    return found


def _named(row: WordRow, entity: Entity[WordSpan]) -> str:
    start, end = entity.span.start, entity.span.end
    return f"{' '.join(row.words[start:end])!r} ({entity.label}, words {start}:{end})"


def _cannot(holder: str) -> str:
    return f"which {holder} cannot hold"
