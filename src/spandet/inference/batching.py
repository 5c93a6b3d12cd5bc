"""Batches from a stream of documents: windows of bounded size, sorted by length inside."""

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
"""Number of neighbouring batches that are sorted again, by words."""


def documents_of(stream: Iterable[Document | str]) -> Iterator[Document]:
    """Convert texts in a stream to documents; documents are unchanged.

    Raises:
        UsageError: an item of the stream is neither, or the stream is a single text.
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
    """Split a stream into runs of documents with enough sentences to sort by length.

    A run has a maximum number of sentences (each document counts as at least one) and, unless it is
    one document, of characters. Each run depends only on its first document.
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
    """Group indices of similar size in batches.

    The longest come first, so that later batches fit into the memory that earlier ones have freed.

    Args:
        runs: Indices that are encoded together; the first has the size of all.
        sizes: Number of pieces by index.
        words: Number of words by index.
        budget: Maximum number of pieces of a batch with more than one run, including padding.
    """
    return reversed(list(length_buckets(runs, sizes, words, Budget(_BATCH_SENTENCES, budget))))


@dataclass(frozen=True)
class Budget:
    """Maximum size of a batch, unless it is one run."""

    sentences: int
    pieces: int
    """Including padding."""


def length_buckets(
    runs: Iterable[Sequence[int]], pieces: Sequence[int], words: Sequence[int], budget: Budget
) -> Iterator[tuple[int, ...]]:
    """Group all sentences in batches, from short to long.

    Sorted by pieces, for the encoder. With this alone, a fifth of the words of a batch would be
    padding, because names have many pieces per word. So neighbouring batches are sorted again, by
    words.

    Args:
        runs: Sentences that are encoded together, and stay in one batch.
        pieces: Number of pieces of each sentence; the same number for all sentences of a run.
        words: Number of words of each sentence.
        budget: Maximum size of a batch.
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
    """Split runs into batches; a new batch begins where the next run would exceed the budget."""
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
