"""Input of the encoder: one sentence with its context."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from spandet.text import Document, Sentence


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

    def __post_init__(self) -> None:
        if self.tags and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.words)} words, but {len(self.tags)} tags")


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
        document: Where the sentences are.
        context_words: Most words on each side.
        passage_words: Most words of a passage; 0: there are none.
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
