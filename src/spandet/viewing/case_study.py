"""The notation of a case study: [²T cells]³CEL, and (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01).

It is for people, and follows the papers in naming the last word of a span instead of the word after
it. Nothing but what is printed does so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spandet.text import Entity, Sentence, WordSpan
from spandet.viewing.cells import printable
from spandet.viewing.traces import Candidate, Step

ARROW = " ← "
NO_ENTITY = "no entity"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_MANY = 4


class Piece(NamedTuple):
    """A stretch of a sentence, or a bracket of the entity with this label."""

    text: str
    label: str | None


def bracketed(
    sentence: Sentence, text: str, entities: Iterable[Entity[WordSpan]]
) -> Iterator[Piece]:
    """A sentence of a text; brackets bear the numbers of an entity's first and last word.

    An entity in pieces has brackets around each of them; what pieces share, they share.
    """
    pieces = dict.fromkeys((piece, entity.label) for entity in entities for piece in entity.pieces)
    own = sorted(pieces, key=lambda piece: (piece[0].start, -piece[0].end))
    end = sentence.starts[0] if sentence.words else 0
    for i, (word, start) in enumerate(zip(sentence.words, sentence.starts, strict=True)):
        yield Piece(gap(text[end:start]), None)
        yield from (Piece(f"[{_raised(i)}", label) for span, label in own if span.start == i)
        yield Piece(printable(word), None)
        # Of those that end together, the inner ones began last.
        closing = (label for span, label in reversed(own) if span.end == i + 1)
        yield from (Piece(f"]{_raised(i)}{printable(label)}", label) for label in closing)
        end = start + len(word)


def gap(text: str) -> str:
    """What stands between two words; any white space is one space."""
    return " " if text.isspace() else printable(text)


def triple(pieces: Iterable[WordSpan], label: str) -> str:
    """(first word, last word, label); of an entity in pieces, the words of each of them."""
    places = " … ".join(f"{piece.start}, {piece.end - 1}" for piece in pieces)
    return f"({places}, {printable(label)})"


def believed(candidate: Candidate) -> str:
    """The most probable label of a candidate, in words."""
    best = max(candidate.label_probs, key=candidate.label_probs.__getitem__)
    return NO_ENTITY if best is None else best


def way(steps: Sequence[Step], *, all_stages: bool = False) -> str:
    """Where a span stood, newest stage first; of very many stages only the last and the first."""
    places = [pair(step) for step in reversed(steps)]
    if len(places) > _MANY and not all_stages:
        places[1:-1] = [f"… {len(places) - 2} more …"]
    return "".join(ARROW + place for place in places)


def pair(step: Step) -> str:
    """(start, end) of a stage, both in words; equal whole numbers are one word."""
    return f"({_two_decimals(step.start)}, {_two_decimals(step.end - 1)})"


def _two_decimals(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # never -0.00


def _raised(number: int) -> str:
    return str(number).translate(_RAISED)
