"""Windows over long sentences, and how the entities of windows are joined to sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pydantic import model_validator

from spandet.config import Natural, Positive, Settings
from spandet.encoding.examples import Example, Window, windows_of
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings, without_shared_words
from spandet.inference.linking import DecodedEntity, assemble

_NEAR = 2
"""A window shares words with up to this many windows on each side."""


class LongSentences(Settings):
    """Which sentences are divided into windows, and how.

    An entity of fewer words than the overlap is inside some window at any position. A longer one
    is found only if a window contains it and it does not touch an edge of the window.
    """

    words: Positive = 400
    """Maximum words of a window."""
    overlap: Natural = 100
    """Minimum words that neighbouring windows share."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> LongSentences:
        if self.overlap > self.words // 2:
            raise ValueError(f"overlap must be at most half of words, {self.words // 2}")
        return self


@dataclass(frozen=True, slots=True)
class SentenceWindow:
    """What is encoded at once: a sentence, or a window over a long one."""

    sentence: int
    """The number of the sentence."""
    window: Window
    """In words of the sentence."""
    example: Example
    is_whole: bool = True


def sentence_windows(
    examples: Sequence[Example], settings: LongSentences, context: int
) -> list[SentenceWindow]:
    """Sentences as they are, and windows over the long ones.

    Args:
        examples: The sentences.
        settings: Which sentences are long.
        context: Maximum words on each side of a window that the encoder can use.
    """
    found = []
    for number, example in enumerate(examples):
        length = len(example.words)
        if length <= settings.words:
            found.append(SentenceWindow(number, Window(0, length, 0, length), example))
            continue
        windows = windows_of(
            0, length, 0, capacity=settings.words, context=0, overlap=settings.overlap
        )
        found.extend(
            SentenceWindow(number, window, _inside(example, window, context), is_whole=False)
            for window in windows
        )
    return found


class SentenceDecoder:
    """Decodes the candidates of batches, and joins the entities of windows to sentences."""

    def __init__(self, windows: Sequence[SentenceWindow], decoding: DecodingSettings) -> None:
        """Begin without entities.

        Args:
            windows: What is encoded, from `sentence_windows`.
            decoding: How candidates become entities.
        """
        self._windows = windows
        self._decoding = decoding
        # Where entities must not overlap, the windows of long sentences keep all overlaps: an
        # entity that is cut at an edge must not suppress another one.
        later = decoding.flat and not all(window.is_whole for window in windows)
        self._of_windows = decoding.keeping_overlaps if later else decoding
        self._found: list[list[DecodedEntity]] = [[] for _ in windows]

    def add(self, batch: Sequence[int], candidates: Candidates) -> None:
        """Decode a batch: the numbers of windows, and the candidates of each."""
        for entity in assemble(candidates, self._of_windows):
            self._found[batch[entity.sentence]].append(entity)

    def sentences(self) -> list[list[DecodedEntity]]:
        """The entities of each sentence, in reading order, in words of the sentence."""
        may_cross, flat = self._decoding.crossing == "keep", self._decoding.flat
        return joined(self._windows, self._found, may_cross=may_cross, flat=flat)


def joined(
    windows: Sequence[SentenceWindow],
    found: Sequence[list[DecodedEntity]],
    *,
    may_cross: bool,
    flat: bool = False,
) -> list[list[DecodedEntity]]:
    """The entities of each sentence, from those of its windows.

    Args:
        windows: What was encoded, from `sentence_windows`.
        found: The entities of each window, in its own words.
        may_cross: Keep entities of different windows that cross; otherwise the one with the higher
            score is kept.
        flat: Of entities that overlap, keep the one with the highest score, in all sentences.
    """
    sentences = _joined(windows, found, may_cross=may_cross or flat)
    return [_apart(entities) for entities in sentences] if flat else sentences


def _joined(
    windows: Sequence[SentenceWindow], found: Sequence[list[DecodedEntity]], *, may_cross: bool
) -> list[list[DecodedEntity]]:
    sentences = []
    for _, group in groupby(zip(windows, found, strict=True), key=lambda pair: pair[0].sentence):
        own = list(group)
        if own[0][0].is_whole:
            sentences.append(own[0][1])
            continue
        places = [window.window for window, _ in own]
        decided = [
            list(_decided(places, number, entities)) for number, (_, entities) in enumerate(own)
        ]
        kept = decided if may_cross else _uncrossed(decided)
        everything = [entity for entities in kept for entity in entities]
        sentences.append(sorted(everything, key=lambda e: (e.start, -e.end)))
    return sentences


def _decided(
    windows: Sequence[Window], number: int, found: Iterable[DecodedEntity]
) -> Iterator[DecodedEntity]:
    """The entities of a window that are farther from its edges than from those of other windows.

    Windows have one size, so the farthest edges are those of the window with the nearest middle.
    An entity that touches an edge inside the sentence may have been cut by it, and is dropped.
    """
    window, length = windows[number], windows[-1].end
    # Twice the middle between the middles of two windows; of a span, start + end is twice its own.
    low = windows[number - 1].start + window.end if number else 0
    high = window.start + windows[number + 1].end if window.end < length else 2 * length
    for entity in found:
        shifted = _shifted(entity, window.start)
        start, end = shifted.start, shifted.end
        is_cut = start == window.start > 0 or end == window.end < length
        if not is_cut and low <= start + end < high:
            yield shifted


def _uncrossed(windows: Sequence[list[DecodedEntity]]) -> list[list[DecodedEntity]]:
    """Without entities that cross a higher-scoring one of another window.

    Discontinuous entities are kept.
    """
    ranked = sorted(
        ((number, e) for number, entities in enumerate(windows) for e in entities),
        key=lambda pair: -pair[1].score,
    )
    kept: list[list[DecodedEntity]] = [[] for _ in windows]
    for number, entity in ranked:
        near = range(max(0, number - _NEAR), min(len(windows), number + _NEAR + 1))
        others = (other for place in near if place != number for other in kept[place])
        if not any(_cross(entity, other) for other in others):
            kept[number].append(entity)
    return kept


def _cross(one: DecodedEntity, other: DecodedEntity) -> bool:
    """Whether two contiguous entities overlap without one containing the other."""
    if len(one.spans) > 1 or len(other.spans) > 1:
        return False
    first, second = sorted([one.spans[0], other.spans[0]])
    return first[0] < second[0] < first[1] < second[1]


def _apart(entities: Sequence[DecodedEntity]) -> list[DecodedEntity]:
    """The highest-scoring entities that share no word."""
    return without_shared_words(
        entities, spans=lambda entity: entity.spans, score=lambda entity: entity.score
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


def _shifted(entity: DecodedEntity, by: int) -> DecodedEntity:
    return replace(entity, spans=tuple((start + by, end + by) for start, end in entity.spans))
