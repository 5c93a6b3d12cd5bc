"""Training and dev data: documents, entities that can be learnt, sentences for the encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from spandet.encoding import Example
from spandet.errors import FormatError, UsageError
from spandet.formats import Corpus, read
from spandet.inference.recognizer import Recognizer
from spandet.inference.tagging import Tagger
from spandet.text import Document, Sentence, WordRow


@dataclass(frozen=True)
class Split:
    """The documents of the training or dev data, with digests that identify them."""

    name: str
    """The file's name without its folders; several names are joined by "+"."""
    documents: tuple[Document, ...]
    content: str
    """A digest of texts, sentences and entities."""
    file_sha256: str | None
    """SHA-256 of the file that the documents were read from; of several files, that of their bytes
    one after another. None for folders and documents in memory."""
    left_out: tuple[str, ...] = ()
    """Warnings about entities that were removed because they cannot be learnt."""

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return sum(len(document.sentences) for document in self.documents)

    @property
    def entities(self) -> int:
        """Number of entities."""
        return sum(len(document.entities) for document in self.documents)

    @property
    def labels(self) -> set[str]:
        """The labels of all entities."""
        return {entity.label for document in self.documents for entity in document.entities}


Readable = Corpus | str | PathLike[str]
"""A corpus from `read`, or a path to read."""
Documents = Split | Readable | Sequence[Readable] | Iterable[Document]
"""Data for `train`: a split from `load`, a corpus, a path, a list of both, or documents."""


def load(source: Documents, *, limit: int | None = None) -> Split:
    """Read all documents, or the first `limit` sentences; those of several files in their order.

    Raises:
        UsageError: a list holds files and documents.
    """
    if isinstance(source, Split):
        return source
    corpora = _corpora(source)
    chained = chain.from_iterable(corpora)
    documents = tuple(chained if limit is None else _first_sentences(chained, limit))
    paths = [Path(one.source.path) for one in corpora if isinstance(one, Corpus)]
    name = " + ".join(path.name for path in paths) or "documents in memory"
    return Split(
        name=name if limit is None else f"{name} (the first {limit:,} sentences)",
        documents=documents,
        content=_content(documents),
        file_sha256=_files_sha256(paths) if all(map(Path.is_file, paths)) and paths else None,
    )


def _corpora(source: Readable | Sequence[Readable] | Iterable[Document]) -> list[Any]:
    """The iterables of documents to read one after another."""
    parts: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    kinds = {isinstance(part, Corpus | str | PathLike) for part in parts}
    if kinds == {True, False}:
        raise UsageError("a list of data has files and documents, expected only one of them")
    if isinstance(source, list | tuple) and kinds != {True}:  # documents
        return [source]
    return [read(part) if isinstance(part, str | PathLike) else part for part in parts]


def _first_sentences(documents: Iterable[Document], limit: int) -> Iterator[Document]:
    left = limit
    for document in documents:
        if left <= 0:
            return
        yield document if len(document.sentences) <= left else _cut(document, left)
        left -= len(document.sentences)


def _cut(document: Document, sentences: int) -> Document:
    """The first sentences of a document, with the entities inside them."""
    own = document.sentences[:sentences]
    end = max((sentence.span.end for sentence in own if sentence.span), default=0)
    entities = tuple(entity for entity in document.entities if entity.span.end <= end)
    return replace(document, text=document.text[:end], entities=entities, own_sentences=own)


def _content(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        entities = [(entity.spans, entity.label) for entity in document.entities]
        sentences = [(s.words, s.starts, s.tags, s.before, s.after) for s in document.sentences]
        facts = repr((document.text, entities, sentences))
        digest.update(facts.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _files_sha256(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def learnable(split: Split, *, fragments: bool = False) -> Split:
    """The split with only those entities that consist of whole words of one sentence.

    Args:
        split: The training data.
        fragments: Keep discontinuous entities; otherwise they are removed, too.

    Raises:
        UsageError: there are no sentences, or no entity is left.
    """
    if not any(sentence.words for d in split.documents for sentence in d.sentences):
        raise UsageError(f"the training data ({split.name}) have no sentences")
    cut, gaps = 0, 0
    documents = []
    for document in split.documents:
        whole = tuple(e for e in document.entities if fragments or not e.fragments)
        gaps += len(document.entities) - len(whole)
        # Sentences are stored, so that raw text is not split again on every access.
        aligned = _aligned(replace(document, entities=whole, own_sentences=document.sentences))
        cut += len(whole) - len(aligned.entities)
        documents.append(aligned)
    left_out = [
        f"{count:,} of {split.entities:,} entities {why} and cannot be learnt"
        for count, why in ((cut, "cut words or leave their sentence"), (gaps, "have gaps"))
        if count
    ]
    if cut + gaps == split.entities:
        found = f" that can be learnt: {'; '.join(left_out)}" if left_out else ""
        raise UsageError(f"the training data ({split.name}) have no entity{found}")
    return replace(split, documents=tuple(documents), left_out=tuple(left_out))


def with_tags(split: Split, tagger: Tagger) -> Split:
    """The split with tags for its sentences that have none; the digest is that of both."""
    documents = tuple(
        replace(document, own_sentences=tuple(_tagged(s, tagger) for s in document.sentences))
        for document in split.documents
    )
    return replace(split, documents=documents, content=_content(documents))


def _tagged(sentence: Sentence, tagger: Tagger) -> Sentence:
    if sentence.tags or not sentence.words:
        return sentence
    return replace(sentence, tags=tuple(tagger(sentence.words)))


def _aligned(document: Document) -> Document:
    if _fits(document):
        return document
    fitting = [e for e in document.entities if _fits(replace(document, entities=(e,)))]
    return replace(document, entities=tuple(fitting))


def _fits(document: Document) -> bool:
    try:
        for _ in document.rows():
            pass
    except FormatError:
        return False
    return True


@dataclass(frozen=True)
class TrainingSentences:
    """Training sentences as input of the encoder, with their entities; empty ones are left out."""

    examples: Sequence[Example]
    rows: Sequence[WordRow]
    sizes: Sequence[int]
    """Pieces per sentence."""
    runs: Sequence[Sequence[int]]
    """Groups of sentences that the encoder reads as one passage."""

    @classmethod
    def of(cls, recognizer: Recognizer, documents: Iterable[Document]) -> TrainingSentences:
        """The sentences of `learnable` documents."""
        pairs = [
            (example, row)
            for document in documents
            for example, row in zip(recognizer.examples_of(document), document.rows(), strict=True)
            if row.words
        ]
        encoder = recognizer.encoder
        examples = encoder.with_pieces([example for example, _ in pairs])
        rows = [row for _, row in pairs]
        return cls(examples, rows, encoder.sizes(examples), encoder.together(examples))

    @cached_property
    def words(self) -> Sequence[int]:
        """Words per sentence."""
        return [len(row.words) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)
