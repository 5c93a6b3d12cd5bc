"""Sentences that are too long to be read at once: overlapping windows, and what is kept of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import model_validator

from spandet.config import Natural, Positive, Settings
from spandet.encoding import Example
from spandet.encoding.windows import Window, windows_of
from spandet.inference.decoding import DecodingSettings, without_shared_words
from spandet.text import Entity, WordSpan

_NEAR = 2
"""Windows with more than one between them share no words."""


class LongSentences(Settings):
    """When a sentence is read in windows.

    An entity of fewer words than the overlap is found wherever it stands; one of more words only
    if a window holds it whole and no edge touches it.
    """

    words: Positive = 400
    """Most words that are read at once."""
    overlap: Natural = 100
    """Words that neighbouring windows share at least."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> LongSentences:
        if self.overlap > self.words // 2:
            raise ValueError(f"overlap must be at most half of words, {self.words // 2}")
        return self


@dataclass(frozen=True, slots=True)
class Part:
    """What is read at once: a sentence, or a window over a long one."""

    sentence: int
    window: Window
    """In words of the sentence."""
    example: Example
    is_whole: bool = True


def parts_of(examples: Sequence[Example], settings: LongSentences, context: int) -> list[Part]:
    """What to read: sentences as they are, and windows over the long ones.

    Args:
        examples: The sentences.
        settings: What is long.
        context: Most words on each side of a window that the encoder can use.
    """
    parts = []
    for number, example in enumerate(examples):
        length = len(example.words)
        if length <= settings.words:
            parts.append(Part(number, Window(0, length, 0, length), example))
            continue
        windows = windows_of(
            0, length, 0, capacity=settings.words, context=0, overlap=settings.overlap
        )
        parts.extend(
            Part(number, window, _inside(example, window, context), is_whole=False)
            for window in windows
        )
    return parts


def by_part(
    parts: Sequence[Part],
    batches: Iterable[tuple[Sequence[int], Iterable[tuple[int, Entity[WordSpan]]]]],
) -> list[list[Entity[WordSpan]]]:
    """The entities of each part.

    Args:
        parts: What was read.
        batches: The numbers of the parts that were read together, and what was found in them: the
            place of the part in its batch, and the entity.
    """
    found: list[list[Entity[WordSpan]]] = [[] for _ in parts]
    for chosen, entities in batches:
        for place, entity in entities:
            found[chosen[place]].append(entity)
    return found


def decoding_of(parts: Sequence[Part], decoding: DecodingSettings) -> DecodingSettings:
    """How to decode parts, before they are joined.

    Where nothing may overlap, windows keep all overlaps: one may be cut at an edge, and must not
    take words away from another.
    """
    windowed = decoding.flat and not all(part.is_whole for part in parts)
    return decoding.keeping_overlaps if windowed else decoding


def joined(
    parts: Sequence[Part],
    found: Sequence[list[Entity[WordSpan]]],
    *,
    may_cross: bool,
    flat: bool = False,
) -> list[list[Entity[WordSpan]]]:
    """The entities of each sentence, from those of its parts.

    Args:
        parts: What was read, as `parts_of` gave it.
        found: The entities of each part, in its own words.
        may_cross: May two windows disagree by entities that cross? If not, the surer one stays.
        flat: May no two entities overlap? Then the surer one stays, in all sentences.
    """
    sentences = _joined(parts, found, may_cross=may_cross or flat)
    return [_apart(entities) for entities in sentences] if flat else sentences


def _joined(
    parts: Sequence[Part], found: Sequence[list[Entity[WordSpan]]], *, may_cross: bool
) -> list[list[Entity[WordSpan]]]:
    sentences = []
    for _, group in groupby(zip(parts, found, strict=True), key=lambda pair: pair[0].sentence):
        own = list(group)
        if own[0][0].is_whole:
            sentences.append(own[0][1])
            continue
        windows = [part.window for part, _ in own]
        decided = [
            list(_decided(windows, number, entities)) for number, (_, entities) in enumerate(own)
        ]
        kept = decided if may_cross else _uncrossed(decided)
        everything = [entity for entities in kept for entity in entities]
        sentences.append(sorted(everything, key=lambda e: (e.span.start, -e.span.end)))
    return sentences


def _decided(
    windows: Sequence[Window], number: int, found: Iterable[Entity[WordSpan]]
) -> Iterator[Entity[WordSpan]]:
    """Of what was found in a window, that for which no other window has farther edges.

    Windows have one size, so the farthest edges are those of the window with the nearest middle.
    What touches an edge inside the sentence may have been cut by it.
    """
    window, length = windows[number], windows[-1].end
    # Twice the middle between the middles of two windows; of a span, start + end is twice its own.
    low = windows[number - 1].start + window.end if number else 0
    high = window.start + windows[number + 1].end if window.end < length else 2 * length
    for entity in found:
        moved = _moved(entity, window.start)
        start, end = moved.span.start, moved.span.end
        is_cut = start == window.start > 0 or end == window.end < length
        if not is_cut and low <= start + end < high:
            yield moved


def _uncrossed(windows: Sequence[list[Entity[WordSpan]]]) -> list[list[Entity[WordSpan]]]:
    """Without what crosses a surer entity of another window. Entities with gaps are let be."""
    ranked = sorted(
        ((number, e) for number, entities in enumerate(windows) for e in entities),
        key=lambda pair: -(pair[1].score or 0.0),
    )
    kept: list[list[Entity[WordSpan]]] = [[] for _ in windows]
    for number, entity in ranked:
        near = range(max(0, number - _NEAR), min(len(windows), number + _NEAR + 1))
        others = (other for place in near if place != number for other in kept[place])
        if entity.fragments or not any(
            entity.span.crosses(other.span) for other in others if not other.fragments
        ):
            kept[number].append(entity)
    return kept


def _apart(entities: Sequence[Entity[WordSpan]]) -> list[Entity[WordSpan]]:
    """The best that share no word."""
    return without_shared_words(
        entities,
        spans=lambda entity: [(piece.start, piece.end) for piece in entity.pieces],
        score=lambda entity: entity.score or 0.0,
    )


def _inside(example: Example, window: Window, context: int) -> Example:
    words, start, end = example.words, window.start, window.end
    before = (*example.left, *words[max(0, start - context) : start])
    after = (*words[end : end + context], *example.right)
    return Example(
        words[start:end],
        example.tags[start:end],
        left=before[max(0, len(before) - context) :],
        right=after[:context],
    )


def _moved(entity: Entity[WordSpan], by: int) -> Entity[WordSpan]:
    pieces = [WordSpan(piece.start + by, piece.end + by) for piece in entity.pieces]
    return Entity.from_fragments(pieces, entity.label, entity.score)
