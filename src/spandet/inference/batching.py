"""How a stream of documents becomes batches: windows of bounded size, sorted by length inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from spandet.errors import UsageError
from spandet.text import Document

_WINDOW_SENTENCES = 1024
_WINDOW_CHARACTERS = 1 << 18
_BATCH_SENTENCES = 64
_NEIGHBOURS = 3
"""Batches that are alike in pieces and are sorted anew by words."""


def documents_of(stream: Iterable[Document | str]) -> Iterator[Document]:
    """Documents as they are, and texts as documents.

    Raises:
        UsageError: something in the stream is neither, or the stream is one text.
    """
    if isinstance(stream, str | Document):
        raise UsageError("predict takes many documents or texts, such as [text], got one alone")
    return map(_document, stream)


def _document(item: Document | str) -> Document:
    if isinstance(item, str):
        return Document(item)
    if isinstance(item, Document):
        return item
    raise UsageError(f"predict takes documents or texts, got a {type(item).__name__}")


def windows(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Runs of documents with enough sentences to sort by length.

    A run is bounded: by its sentences, each document counting for one at least, and by its
    characters, unless it is one document. Each run depends only on where it starts.
    """
    window: list[Document] = []
    sentences = characters = 0
    for document in documents:
        if window and characters + len(document.text) > _WINDOW_CHARACTERS:
            yield window
            window, sentences, characters = [], 0, 0
        window.append(document)
        sentences += max(1, len(document.sentences))
        characters += len(document.text)
        if sentences >= _WINDOW_SENTENCES or characters >= _WINDOW_CHARACTERS:
            yield window
            window, sentences, characters = [], 0, 0
    if window:
        yield window


def batches(
    runs: Sequence[Sequence[int]], sizes: Sequence[int], words: Sequence[int], budget: int
) -> Iterable[tuple[int, ...]]:
    """Indices of similar size together.

    The longest come first, so that later batches fit into the memory that earlier ones have left.

    Args:
        runs: Indices that are read as one; the first has the size of all.
        sizes: Pieces by index.
        words: Words by index.
        budget: Most pieces of a batch with more than one run, padding counted.
    """
    return reversed(list(length_buckets(runs, sizes, words, Budget(_BATCH_SENTENCES, budget))))


@dataclass(frozen=True)
class Budget:
    """What a batch may hold, unless it is one run."""

    sentences: int
    pieces: int
    """With padding."""


def length_buckets(
    runs: Iterable[Sequence[int]], pieces: Sequence[int], words: Sequence[int], budget: Budget
) -> Iterator[tuple[int, ...]]:
    """All sentences in batches, from short to long.

    Sorted by pieces for the encoder; by these alone, a fifth of what a detector gets would be
    padding, as names are words of many pieces. So neighbours are sorted once more, by words.

    Args:
        runs: Sentences that are read as one, and so stay together.
        pieces: Of each sentence; those of a run have one number.
        words: Of each sentence.
        budget: Of a batch.
    """
    by_pieces = sorted(runs, key=lambda run: pieces[run[0]])
    batches = list(_cut(by_pieces, pieces, budget))
    for first in range(0, len(batches), _NEIGHBOURS):
        some = chain.from_iterable(batches[first : first + _NEIGHBOURS])
        by_words = sorted(some, key=lambda run: max(words[sentence] for sentence in run))
        for batch in _cut(by_words, pieces, budget):
            yield tuple(chain.from_iterable(batch))


def _cut(
    runs: Iterable[Sequence[int]], pieces: Sequence[int], budget: Budget
) -> Iterator[list[Sequence[int]]]:
    """A new batch where the next run would break the budget."""
    batch: list[Sequence[int]] = []
    sentences = longest = 0
    for run in runs:
        sentences, longest = sentences + len(run), max(longest, pieces[run[0]])
        padded = (len(batch) + 1) * longest
        if batch and (sentences > budget.sentences or padded > budget.pieces):
            yield batch
            batch, sentences, longest = [], len(run), pieces[run[0]]
        batch.append(run)
    if batch:
        yield batch
