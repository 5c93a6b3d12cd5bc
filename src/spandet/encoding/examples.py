"""Input of the encoder: one sentence with its context."""

from __future__ import annotations

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
    neighbour_sentences: bool = False,
) -> list[Example]:
    """One example per sentence, with its passage or some neighbouring words as context.

    Context comes from the document; without passages, the words that its source has before the
    first and after the last sentence (`Sentence.before`, `after`) follow.

    Args:
        document: Where the sentences are.
        context_words: Most words on each side.
        passage_words: Most words of a passage; 0: there are none.
        neighbour_sentences: The words on each side are those of the next sentence that has any;
            what the source had before or after the document counts as one.
    """
    sentences = document.sentences
    if not sentences:
        return []
    if passage_words:
        return list(chain.from_iterable(map(_passage_examples, passages(sentences, passage_words))))
    before, after = sentences[0].before, sentences[-1].after
    if neighbour_sentences:
        own = [sentence.words for sentence in sentences]
        lefts = _previous([before, *own])
        rights = reversed(list(_previous([after, *reversed(own)])))
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


def _previous(runs: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """For each run of words but the first: the nearest one before it that is not empty."""
    nearest: tuple[str, ...] = ()
    for before, _ in pairwise(runs):
        nearest = before or nearest
        yield nearest


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
