"""Numbers of candidate spans of sentences: needs no torch."""

from collections.abc import Sequence


def candidate_counts(
    lengths: Sequence[int], fixed: int | None, per_word: float, extra: int
) -> list[int]:
    """Number of candidate spans of each sentence: fixed, or `per_word` · words + `extra`.

    In the second case at most the number of its spans. A sentence without words has none.
    """
    if fixed is not None:
        return [fixed if words else 0 for words in lengths]
    return [min(int(per_word * words) + extra, words * (words + 1) // 2) for words in lengths]
