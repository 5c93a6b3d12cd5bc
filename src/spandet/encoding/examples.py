"""Input of the encoder: sentences with their context, their sub-word pieces, and windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import TypedDict

from spandet.text import Document, Sentence


@dataclass(frozen=True, slots=True)
class Window:
    """A range of items that is encoded at once, and the part of it whose vectors are kept.

    Items are the pieces of a sentence with its context, or the words of a long sentence; they are
    counted from the first one of the context before the sentence.
    """

    start: int
    end: int
    kept_start: int
    kept_end: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """The sub-word pieces of a sentence and its context."""

    ids: list[int]
    """Context before the sentence, the sentence, context after it."""
    counts: list[int]
    """Pieces of each word of the sentence."""
    windows: list[Window]
    """What is encoded at once: one window, or several for a long sentence."""


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence with its context."""

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()
    """One part-of-speech tag per word, or none at all."""
    left: tuple[str, ...] = ()
    """Context words before the sentence, the nearest last."""
    right: tuple[str, ...] = ()
    """Context words after the sentence, the nearest first."""
    pieces: Pieces | None = field(default=None, compare=False, repr=False, kw_only=True)
    """The sub-word pieces, once an encoder has computed them (`Encoder.with_pieces`)."""

    def __post_init__(self) -> None:
        if self.tags and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.words)} words, but {len(self.tags)} tags")


class ContextSizes(TypedDict):
    """How much context a model uses: the keyword arguments of `examples_of`."""

    context_words: int
    passage_words: int
    neighbour_sentences: int


def examples_of(
    document: Document,
    *,
    context_words: int,
    passage_words: int = 0,
    neighbour_sentences: int = 0,
) -> list[Example]:
    """One example per sentence, with its passage or some neighbouring words as context.

    Context comes from the document; without passages, the words that its source has before the
    first and after the last sentence (`Sentence.before`, `after`) follow.

    Args:
        document: The document with the sentences.
        context_words: Maximum words on each side.
        passage_words: Maximum words of a passage; 0: no passages.
        neighbour_sentences: If not 0, the words on each side are those of this many nearest
            sentences with words. The source's words before and after the document count as one
            sentence, unless the lengths of their sentences are known.
    """
    sentences = document.sentences
    if not sentences:
        return []
    if passage_words:
        return list(chain.from_iterable(map(_passage_examples, passages(sentences, passage_words))))
    before, after = sentences[0].before, sentences[-1].after
    if neighbour_sentences:
        own = [sentence.words for sentence in sentences]
        outer = _split(before, sentences[0].before_lengths)
        lefts = _previous(outer, own, neighbour_sentences)
        outer = _split(after, sentences[-1].after_lengths)
        # From right to left, each sentence still in reading order.
        rights = _previous(outer[::-1], own[::-1], neighbour_sentences, backwards=True)[::-1]
        return [
            Example(
                sentence.words,
                sentence.tags,
                left=left[max(0, len(left) - context_words) :],
                right=right[:context_words],
            )
            for sentence, left, right in zip(sentences, lefts, rights, strict=True)
        ]
    words = (*before, *chain.from_iterable(s.words for s in sentences), *after)
    starts = accumulate((len(sentence) for sentence in sentences), initial=len(before))
    return [
        Example(
            sentence.words,
            sentence.tags,
            left=words[max(0, start - context_words) : start],
            right=words[start + len(sentence) : start + len(sentence) + context_words],
        )
        for start, sentence in zip(starts, sentences, strict=False)
    ]


def _split(words: tuple[str, ...], lengths: Sequence[int]) -> list[tuple[str, ...]]:
    """The sentences of the given lengths; without lengths, all words as one sentence."""
    if not lengths:
        return [words]
    return [words[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def _previous(
    outer: Sequence[tuple[str, ...]],
    own: Sequence[tuple[str, ...]],
    count: int,
    *,
    backwards: bool = False,
) -> list[tuple[str, ...]]:
    """For each own sentence, the words of the `count` nearest sentences before it with any words.

    `backwards`: sentences are given from right to left, and "before" is after them in the text.
    """
    nearest = deque((words for words in outer if words), maxlen=count)
    found = []
    for words in own:
        found.append(tuple(chain.from_iterable(reversed(nearest) if backwards else nearest)))
        if words:
            nearest.append(words)
    return found


def passages(sentences: Sequence[Sentence], words: int) -> Iterator[list[Sentence]]:
    """Group neighbouring sentences of up to `words` words in total; a longer sentence is alone.

    The passages after the end of a passage do not depend on the sentences before it.
    """
    run: list[Sentence] = []
    taken = 0
    for sentence in sentences:
        if run and taken + len(sentence) > words:
            yield run
            run, taken = [], 0
        run.append(sentence)
        taken += len(sentence)
    if run:
        yield run


def _passage_examples(passage: Sequence[Sentence]) -> Iterator[Example]:
    """The sentences of a passage, each with all other sentences as context."""
    words = tuple(chain.from_iterable(sentence.words for sentence in passage))
    end = 0
    for sentence in passage:
        start, end = end, end + len(sentence)
        yield Example(sentence.words, sentence.tags, left=words[:start], right=words[end:])


def together(examples: Sequence[Example]) -> list[list[int]]:
    """Group the numbers of examples by passage; all examples must come from passages."""
    found: list[list[int]] = []
    for number, example in enumerate(examples):
        before = examples[number - 1] if number else None
        if before and example.left and _follows(example, before):
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _follows(example: Example, before: Example) -> bool:
    return example.left == (*before.left, *before.words) and before.right == (
        *example.words,
        *example.right,
    )


def windows_of(
    before: int, own: int, after: int, *, capacity: int, context: int, overlap: int
) -> list[Window]:
    """The windows of a sentence of `own` pieces with context before and after it.

    Both sides get half of the context each, as its nearest pieces; what one side does not have goes
    to the other. A sentence longer than the capacity has no context: it is divided into overlapping
    windows of equal size, and each piece is kept from the window whose edges are farthest from it.

    Args:
        before: Number of context pieces before the sentence.
        own: Number of pieces of the sentence.
        after: Number of context pieces after the sentence.
        capacity: Maximum pieces of a window.
        context: Maximum pieces of context, both sides together.
        overlap: Minimum number of pieces that neighbouring windows share.
    """
    start, end = before, before + own
    room = min(context, capacity - own)
    if room >= 0:
        left = min(before, max(room // 2, room - after))
        right = min(after, room - left)
        return [Window(start - left, end + right, start, end)]
    step = capacity - min(overlap, capacity // 2)
    starts = [*range(start, end - capacity, step), end - capacity]
    # Windows have equal sizes: the one with the farthest edges is the one with the nearest middle.
    borders = [(a + b + capacity) // 2 for a, b in pairwise(starts)]
    kept = pairwise([start, *borders, end])
    return [Window(s, s + capacity, a, b) for s, (a, b) in zip(starts, kept, strict=True)]
