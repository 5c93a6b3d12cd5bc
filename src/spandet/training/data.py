"""Training and dev data: documents, what can be learnt of them, sentences for the encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

from spandet.encoding import Example
from spandet.errors import FormatError, UsageError
from spandet.formats import Corpus, read
from spandet.inference.recognizer import Recognizer
from spandet.text import Document, WordRow


@dataclass(frozen=True)
class Split:
    """The documents of the training or dev data, with digests that identify them."""

    name: str
    """The file's name without its folders."""
    documents: tuple[Document, ...]
    content: str
    """A digest of texts, sentences and entities."""
    file_sha256: str | None
    """SHA-256 of the file, if the documents were read from one."""
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


Documents = Split | Corpus | Iterable[Document] | str | PathLike[str]
"""Data for `train`: a split from `load`, a corpus from `read`, documents, or a path to read."""


def load(source: Documents, *, limit: int | None = None) -> Split:
    """Read all documents, or the first `limit` sentences."""
    if isinstance(source, Split):
        return source
    corpus = read(source) if isinstance(source, str | PathLike) else source
    documents = tuple(corpus if limit is None else _first_sentences(corpus, limit))
    path = Path(corpus.source.path) if isinstance(corpus, Corpus) else None
    name = path.name if path else "documents in memory"
    return Split(
        name=name if limit is None else f"{name} (the first {limit:,} sentences)",
        documents=documents,
        content=_content(documents),
        file_sha256=_file_sha256(path) if path and path.is_file() else None,
    )


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


def _file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
