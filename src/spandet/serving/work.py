"""What can be done with a text: find its entities, or show how they came about.

A long text is done in parts of whole sentences or passages. A part is a document of its own that
sees the words around it, so that the parts of a text give what the whole gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

from spandet.encoding.examples import passages
from spandet.inference.options import PredictOptions
from spandet.inference.recognizer import Recognizer
from spandet.inference.tracing import TracedDocument, TracedSentence, trace
from spandet.text import CharSpan, Document, Entity, Sentence
from spandet.text.plain import plain_document


@dataclass(frozen=True, slots=True)
class Part:
    """Some sentences of a text, as a document whose characters are counted from `offset`."""

    document: Document
    offset: int = 0


class Work(Protocol):
    """Something to do with texts. Equal works share a batch."""

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[Any]:
        """What comes of each document, in order."""

    def join(self, text: str, done: Sequence[tuple[Part, Any]]) -> dict[str, Any]:
        """The parts of one text together, as JSON."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """Find entities."""

    options: PredictOptions

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[Document]:
        """The documents with what was found."""
        return list(recognizer.predict(documents, self.options))

    def join(self, text: str, done: Sequence[tuple[Part, Document]]) -> dict[str, Any]:
        """Entities by their place in the text."""
        entities = (
            _moved(entity, part.offset) for part, found in done for entity in found.entities
        )
        return {"entities": plain_document(Document(text, tuple(entities)))["entities"]}


@dataclass(frozen=True, slots=True)
class Tracing:
    """Show how entities came about."""

    min_score: float | None = None

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[TracedDocument]:
        """The documents with the way of each entity."""
        return [trace(recognizer, document, min_score=self.min_score) for document in documents]

    def join(self, text: str, done: Sequence[tuple[Part, TracedDocument]]) -> dict[str, Any]:
        """Sentence by sentence; words know their place in the text."""
        sentences = (
            _at(sentence, part.offset) for part, traced in done for sentence in traced.sentences
        )
        return TracedDocument(Document(text), tuple(sentences)).to_json()


def parts_of(
    text: str,
    *,
    longest: int,
    context_words: int,
    passage_words: int = 0,
    neighbour_sentences: bool = False,
) -> list[Part]:
    """A text in parts of about `longest` characters; a sentence or passage is never cut.

    Args:
        text: Any text.
        longest: A text of up to so many characters is one part.
        context_words: How many words around a sentence the model looks at.
        passage_words: How many words of neighbouring sentences it reads at once.
        neighbour_sentences: It looks at no words beyond the next sentence.
    """
    document = Document(text)
    if len(text) <= longest:
        return [Part(document)]
    sentences = [sentence for sentence in document.sentences if sentence.words]
    words = list(chain.from_iterable(sentence.words for sentence in sentences))
    runs = list(_runs(passages(sentences, passage_words), longest))
    parts, position = [], 0
    for number, run in enumerate(runs):
        end = position + sum(map(len, run))
        before = words[max(0, position - context_words) : position]
        after = words[end : end + context_words]
        if neighbour_sentences:
            before = list(runs[number - 1][-1].words) if number else []
            after = list(runs[number + 1][0].words) if end < len(words) else []
        parts.append(_part(text, run, tuple(before), tuple(after)))
        position = end
    return parts


def _runs(groups: Iterable[list[Sentence]], longest: int) -> Iterator[list[Sentence]]:
    """Neighbours, as many as fit."""
    run: list[Sentence] = []
    for group in groups:
        if run and _end(group[-1]) - run[0].starts[0] > longest:
            yield run
            run = []
        run.extend(group)
    if run:
        yield run


def _end(sentence: Sentence) -> int:
    return sentence.starts[-1] + len(sentence.words[-1])


def _part(
    text: str, run: Sequence[Sentence], before: tuple[str, ...], after: tuple[str, ...]
) -> Part:
    offset = run[0].starts[0]
    own = [_shifted(sentence, -offset) for sentence in run]
    own[0] = replace(own[0], before=before)
    own[-1] = replace(own[-1], after=after)
    return Part(Document(text[offset : _end(run[-1])], own_sentences=tuple(own)), offset)


def _shifted(sentence: Sentence, by: int) -> Sentence:
    return replace(sentence, starts=tuple(start + by for start in sentence.starts))


def _at(traced: TracedSentence, offset: int) -> TracedSentence:
    return replace(traced, sentence=_shifted(traced.sentence, offset))


def _moved(entity: Entity[CharSpan], by: int) -> Entity[CharSpan]:
    pieces = (CharSpan(piece.start + by, piece.end + by) for piece in entity.pieces)
    return Entity.from_fragments(pieces, entity.label, entity.score)
