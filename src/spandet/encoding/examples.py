"""The border between text and tensors: one sentence with the context it is read in."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, chain

from spandet.text import Document


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


def examples_of(document: Document, *, context_words: int) -> list[Example]:
    """One example per sentence, with at most `context_words` neighbouring words on each side.

    Neighbours are the document's own; beyond its first and last sentence come the words that its
    source had before and after them.
    """
    sentences = document.sentences
    if not sentences:
        return []
    before, after = sentences[0].before, sentences[-1].after
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
