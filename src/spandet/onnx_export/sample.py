"""Sentences of many lengths: what an export is tried on when there is no other data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from spandet.encoding import Example
from spandet.generation import generate
from spandet.inference.recognizer import Recognizer
from spandet.text import Document, WordRow

_SEED = 71
_SENTENCES = 40
_LENGTHS = (1, 2, 3, 5, 50, 120, 200)
_ODD = ("", "?", "word", "Ünïcödé ΑΒΓ 漢字 שלום مرحبا", "a" * 300)
_SPREAD = 6


def sample_documents(sentences: int = _SENTENCES) -> list[Document]:
    """Generated documents, rows of so many words, and odd ones."""
    documents = [Document(document.text) for document in generate(sentences, seed=_SEED)]
    words = list(chain.from_iterable(s.words for d in documents for s in d.sentences))
    rows = [Document.from_rows([WordRow(words[:length], [])]) for length in _LENGTHS]
    return [*documents, *rows, *map(Document, _ODD)]


def sample_batches(recognizer: Recognizer, documents: Sequence[Document]) -> list[list[Example]]:
    """Some batches in which all sizes differ: in sentences, in words and in their sum."""
    examples = recognizer.tagged([e for d in documents for e in recognizer.examples_of(d)])
    by_length = sorted(examples, key=lambda example: len(example.words))
    some = by_length[:: max(1, len(by_length) // (3 * _SPREAD))]
    return [some[-3:], some[-1:], some[:1], some[1::2], some[2::3], some[:5], some[_SPREAD:-1]]
