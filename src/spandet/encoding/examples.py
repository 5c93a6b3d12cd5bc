"""The border between text and tensors: one sentence with the context it is read in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from spandet.text import Document, Sentence


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence with the context it is read in."""

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()
    """One part-of-speech tag per word, or none at all."""
    left: tuple[str, ...] = ()
    """Words before it in its document, the nearest last."""
    right: tuple[str, ...] = ()
    """Words after it in its document, the nearest first."""

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
    """One example per sentence, in its passage or with some neighbouring words on each side.

    Neighbours are the document's own; beyond its first and last sentence come the words that its
    source had before and after them, unless there are passages.

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
        return list(chain.from_iterable(map(_mates, passages(sentences, passage_words))))
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
    """Neighbours, as many as have at most `words` words together; a longer sentence is alone.

    What follows the end of a passage has passages that do not depend on what came before.
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


def _mates(passage: Sequence[Sentence]) -> Iterator[Example]:
    """The sentences of a passage, each with all others as context."""
    words = tuple(chain.from_iterable(sentence.words for sentence in passage))
    end = 0
    for sentence in passage:
        start, end = end, end + len(sentence)
        yield Example(sentence.words, sentence.tags, left=words[:start], right=words[end:])


def together(examples: Sequence[Example]) -> list[list[int]]:
    """The numbers of the examples that are in one passage, if all of them come from passages."""
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
