"""Similarity of a passage to a corpus: the difference of two cross-entropies.

Moore and Lewis (ACL 2010): a passage's score is its cross-entropy per word under a language model
of the corpus, minus that under a model of the text as a whole. Both models are interpolated unigram
and bigram models over one vocabulary. The lower the score, the more similar the passage is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spandet.text.words import split_words

_BIGRAM_SHARE = 0.6
_LEAST_COUNT = 2
"""Words that are less frequent in corpus and sample together are unknown."""
_UNKNOWN = 0


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return [text[start:end].lower() for start, end in split_words(text)]


class Likeness:
    """Scores passages by their similarity to a corpus."""

    def __init__(self, corpus: Iterable[Sequence[str]], sample: Iterable[Sequence[str]]) -> None:
        """Estimate both language models.

        Args:
            corpus: The words of each document of the corpus.
            sample: The words of each passage of a sample of the text.
        """
        inside, outside = list(corpus), list(sample)
        counts = Counter(word for words in (*inside, *outside) for word in words)
        known = sorted(word for word, count in counts.items() if count >= _LEAST_COUNT)
        self._ids = {word: number for number, word in enumerate(known, start=1)}
        size = 1 + len(known)
        self._inside = _BigramModel(size, map(self._numbers, inside))
        self._outside = _BigramModel(size, map(self._numbers, outside))

    def score(self, words: Sequence[str]) -> float:
        """The difference of cross-entropies in nats per word; infinite for no words."""
        if not words:
            return float("inf")
        numbers = self._numbers(words)
        gain = self._outside.log_probs(numbers) - self._inside.log_probs(numbers)
        return float(gain.mean())

    def _numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self._ids.get(word, _UNKNOWN) for word in words], dtype=np.int64)


class _BigramModel:
    """Words given the word before: an interpolation of bigrams and add-one unigrams."""

    def __init__(self, size: int, passages: Iterable[NDArray[np.int64]]) -> None:
        self._size = size
        rows = list(passages)
        words = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
        counts = np.bincount(words, minlength=size)
        self._unigrams = (counts + 1.0) / (len(words) + size)
        pairs = [row[:-1] * size + row[1:] for row in rows]
        codes = np.concatenate(pairs) if pairs else np.empty(0, dtype=np.int64)
        self._codes, self._counts = np.unique(codes, return_counts=True)
        self._followed = np.bincount(codes // size, minlength=size)

    def log_probs(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """The log probability of each word; the first has no word before it."""
        probs = self._unigrams[words].copy()
        before, codes = words[:-1], words[:-1] * self._size + words[1:]
        places = np.searchsorted(self._codes, codes)
        found = np.zeros(len(codes))
        inside = places < len(self._codes)
        hits = np.flatnonzero(inside)[self._codes[places[inside]] == codes[inside]]
        found[hits] = self._counts[places[hits]] / self._followed[before[hits]]
        seen = self._followed[before] > 0
        probs[1:][seen] = _BIGRAM_SHARE * found[seen] + (1 - _BIGRAM_SHARE) * probs[1:][seen]
        logs: NDArray[np.float64] = np.log(probs)
        return logs
