"""Traces as text: [²T cells]³CEL, and (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01).

As in the case studies of the papers, the second number is the last word of a span. Only printed
text has inclusive ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spandet.text import Entity, Sentence, WordSpan
from spandet.viewing.cells import printable
from spandet.viewing.traces import Candidate, Step

ARROW = " ← "
NO_ENTITY = "no entity"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_MANY = 4


class StyledText(NamedTuple):
    """A part of a sentence, or a bracket of an entity with this label."""

    text: str
    label: str | None


def bracketed(
    sentence: Sentence, text: str, entities: Iterable[Entity[WordSpan]]
) -> Iterator[StyledText]:
    """A sentence with brackets around entities, numbered by their first and last word.

    A discontinuous entity has brackets around each fragment; a shared fragment has one pair.
    """
    fragments = dict.fromkeys((span, entity.label) for entity in entities for span in entity.spans)
    own = sorted(fragments, key=lambda each: (each[0].start, -each[0].end))
    end = sentence.starts[0] if sentence.words else 0
    for i, (word, start) in enumerate(zip(sentence.words, sentence.starts, strict=True)):
        yield StyledText(gap(text[end:start]), None)
        yield from (
            StyledText(f"[{_superscript(i)}", label) for span, label in own if span.start == i
        )
        yield StyledText(printable(word), None)
        # Of those with the same end, the inner ones begin last.
        closing = (label for span, label in reversed(own) if span.end == i + 1)
        yield from (StyledText(f"]{_superscript(i)}{printable(label)}", label) for label in closing)
        end = start + len(word)


def gap(text: str) -> str:
    """The text between two words; white space becomes one space."""
    return " " if text.isspace() else printable(text)


def triple(fragments: Iterable[WordSpan], label: str) -> str:
    """(first word, last word, label), with the words of each fragment."""
    places = " … ".join(f"{span.start}, {span.end - 1}" for span in fragments)
    return f"({places}, {printable(label)})"


def best_label(candidate: Candidate) -> str:
    """The most probable label of a candidate, as text."""
    best = max(candidate.label_probs, key=candidate.label_probs.__getitem__)
    return NO_ENTITY if best is None else best


def trajectory(steps: Sequence[Step], *, all_stages: bool = False) -> str:
    """The boundaries of a span, last stage first; of many stages only the last and the first."""
    places = [pair(step) for step in reversed(steps)]
    if len(places) > _MANY and not all_stages:
        places[1:-1] = [f"… {len(places) - 2} more …"]
    return "".join(ARROW + place for place in places)


def pair(step: Step) -> str:
    """(start, last word) of a stage."""
    return f"({_two_decimals(step.start)}, {_two_decimals(step.end - 1)})"


def _two_decimals(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # never -0.00


def _superscript(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)
