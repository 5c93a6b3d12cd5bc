"""The texts of a run: what they are called, and how to tell whether they are the same again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from spandet.formats import Corpus
from spandet.text import Document


class TextFacts(BaseModel):
    """What is known of one file of text."""

    name: str
    """The file's name without its folders."""
    documents: int = 0
    characters: int = 0
    sha256: str = ""
    """A digest of the documents' texts."""


class Survey:
    """Passes the texts of documents on and notes what they were."""

    def __init__(self, texts: Sequence[Iterable[Document]]) -> None:
        self._texts = texts
        self.facts: list[TextFacts] = []
        """Of the files that have been read to their ends."""

    def __iter__(self) -> Iterator[str]:
        self.facts = []
        for source in self._texts:
            facts, digest = TextFacts(name=_name(source)), hashlib.sha256()
            for document in source:
                text = document.text
                data = text.encode("utf-8", "surrogatepass")
                digest.update(len(data).to_bytes(8) + data)
                facts.documents += 1
                facts.characters += len(text)
                yield text
            facts.sha256 = digest.hexdigest()
            self.facts.append(facts)

    def content(self) -> str:
        """A digest of all texts in their order, once they have been read."""
        return hashlib.sha256(" ".join(facts.sha256 for facts in self.facts).encode()).hexdigest()


def content_of(texts: Sequence[Iterable[Document]]) -> str:
    """The digest of texts, which are read for it."""
    survey = Survey(texts)
    for _ in survey:
        pass
    return survey.content()


def _name(source: Iterable[Document]) -> str:
    return Path(source.source.name).name if isinstance(source, Corpus) else "documents in memory"
