"""Raw text to sentences of words."""

from __future__ import annotations

from itertools import pairwise

from spandet.text.sentence import Sentence
from spandet.text.sentence_breaks import sentence_starts
from spandet.text.words import split_words


def segment(text: str) -> tuple[Sentence, ...]:
    """The sentences of a raw text; every word of `split_words` lies in exactly one, in order."""
    spans = split_words(text)
    words = [text[start:end] for start, end in spans]
    starts = [start for start, _ in spans]
    borders = [*sentence_starts(text, words, starts), len(words)]
    return tuple(
        Sentence(tuple(words[first:end]), tuple(starts[first:end]))
        for first, end in pairwise(borders)
    )
