"""Hashes of word sequences: near duplicates, and passages that share a long string with files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

SKETCH = 16
"""Number of hashes of a passage that are compared with those of others."""
_SHINGLE_WORDS = 5
_DUPLICATE_HASHES = SKETCH // 2
_NONE = np.iinfo(np.uint64).max
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def sequence_hashes(words: Sequence[str], length: int) -> NDArray[np.uint64]:
    """One hash for each run of `length` words, the same in every process."""
    if len(words) < length:
        return np.empty(0, dtype=np.uint64)
    codes = np.array([crc32(w.encode("utf-8", "surrogatepass")) for w in words], dtype=np.uint64)
    hashes = np.zeros(len(words) - length + 1, dtype=np.uint64)
    for place in range(length):
        hashes = (hashes ^ codes[place : place + len(hashes)]) * _FACTOR
        hashes ^= hashes >> np.uint64(29)
    return hashes


def sketch_of(words: Sequence[str]) -> NDArray[np.uint64]:
    """The smallest hashes of a passage's shingles (bottom-k sketch), padded to equal length."""
    hashes = np.unique(sequence_hashes(words, min(_SHINGLE_WORDS, max(1, len(words)))))
    sketch = np.full(SKETCH, _NONE, dtype=np.uint64)
    sketch[: len(hashes[:SKETCH])] = hashes[:SKETCH]
    return sketch


class NearDuplicates:
    """The sketches of passages, to find near duplicates."""

    def __init__(self) -> None:
        self._owners: dict[int, list[int]] = {}
        self._size = 0

    def add(self, sketch: NDArray[np.uint64]) -> bool:
        """Add a passage; returns False, and does not add it, if it is a near duplicate."""
        own: list[int] = sketch[sketch != _NONE].tolist()
        shared: dict[int, int] = {}
        for value in own:
            for owner in self._owners.get(value, ()):
                shared[owner] = shared.get(owner, 0) + 1
        least = min(_DUPLICATE_HASHES, max(1, len(own) // 2 + len(own) % 2))
        if own and max(shared.values(), default=0) >= least:
            return False
        for value in own:
            self._owners.setdefault(value, []).append(self._size)
        self._size += 1
        return True


class SharedStrings:
    """The long word sequences of files."""

    def __init__(self, texts: Iterable[Sequence[str]], length: int) -> None:
        """Hash all sequences of `length` words in texts."""
        self._length = length
        hashes = [sequence_hashes(words, length) for words in texts]
        self._known = np.unique(np.concatenate([np.empty(0, dtype=np.uint64), *hashes]))

    def has_one_of(self, words: Sequence[str]) -> bool:
        """Whether a passage shares a sequence of that many words with the files."""
        own = sequence_hashes(words, self._length)
        return bool(len(self._known) and np.isin(own, self._known, kind="sort").any())
