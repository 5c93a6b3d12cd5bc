"""The two kinds of work on texts, finding and tracing entities, and splitting of long texts.

A long text is split into parts of whole sentences or passages. Each part is a document that has the
words around it as context, so that the parts of a text give the same entities as the whole.
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
from spandet.text.dicts import document_to_dict


@dataclass(frozen=True, slots=True)
class TextPart:
    """Consecutive sentences of a text as a document that starts at `offset` in the text."""

    document: Document
    offset: int = 0


class Work(Protocol):
    """A kind of work on texts, with its options. Equal works share a batch."""

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[Any]:
        """The result of each document, in order."""

    def join(self, text: str, done: Sequence[tuple[TextPart, Any]]) -> dict[str, Any]:
        """Join the results of the parts of a text, as JSON."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """Find entities."""

    options: PredictOptions

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[Document]:
        """The documents with their entities."""
        return list(recognizer.predict(documents, self.options))

    def join(self, text: str, done: Sequence[tuple[TextPart, Document]]) -> dict[str, Any]:
        """The entities, with positions in the whole text."""
        entities = (
            _shifted_entity(entity, part.offset)
            for part, found in done
            for entity in found.entities
        )
        return {"entities": document_to_dict(Document(text, tuple(entities)))["entities"]}


@dataclass(frozen=True, slots=True)
class Tracing:
    """Trace entities through the stages of the detector."""

    min_score: float | None = None

    def run(self, recognizer: Recognizer, documents: Sequence[Document]) -> list[TracedDocument]:
        """The documents with the trajectory of each entity."""
        return [trace(recognizer, document, min_score=self.min_score) for document in documents]

    def join(self, text: str, done: Sequence[tuple[TextPart, TracedDocument]]) -> dict[str, Any]:
        """The sentences, with positions in the whole text."""
        sentences = (
            _shifted_trace(sentence, part.offset)
            for part, traced in done
            for sentence in traced.sentences
        )
        return TracedDocument(Document(text), tuple(sentences)).to_json()


def split_text(
    text: str,
    *,
    max_chars: int,
    context_words: int,
    passage_words: int = 0,
    neighbour_sentences: int = 0,
) -> list[TextPart]:
    """Split a text into parts of about `max_chars` characters, between sentences or passages.

    Args:
        text: Any text.
        max_chars: A text up to this length is one part.
        context_words: Number of context words on each side of a sentence that the model uses.
        passage_words: Number of words of consecutive sentences that the model encodes together.
        neighbour_sentences: Number of sentences on each side that the model uses as context; 0: the
            context is `context_words`.
    """
    document = Document(text)
    if len(text) <= max_chars:
        return [TextPart(document)]
    sentences = [sentence for sentence in document.sentences if sentence.words]
    words = list(chain.from_iterable(sentence.words for sentence in sentences))
    parts, first, position = [], 0, 0
    for run in _runs(passages(sentences, passage_words), max_chars):
        last, end = first + len(run), position + sum(map(len, run))
        if neighbour_sentences:
            before = [s.words for s in sentences[max(0, first - neighbour_sentences) : first]]
            after = [s.words for s in sentences[last : last + neighbour_sentences]]
        else:
            before = [tuple(words[max(0, position - context_words) : position])]
            after = [tuple(words[end : end + context_words])]
        parts.append(_part(text, run, before, after))
        first, position = last, end
    return parts


def _runs(groups: Iterable[list[Sentence]], max_chars: int) -> Iterator[list[Sentence]]:
    """Join consecutive groups of sentences up to `max_chars`."""
    run: list[Sentence] = []
    for group in groups:
        if run and _end(group[-1]) - run[0].starts[0] > max_chars:
            yield run
            run = []
        run.extend(group)
    if run:
        yield run


def _end(sentence: Sentence) -> int:
    return sentence.starts[-1] + len(sentence.words[-1])


def _part(
    text: str,
    run: Sequence[Sentence],
    before: Sequence[tuple[str, ...]],
    after: Sequence[tuple[str, ...]],
) -> TextPart:
    """A part of a text, with the words of the sentences around it."""
    offset = run[0].starts[0]
    own = [_shifted(sentence, -offset) for sentence in run]
    words, lengths = tuple(chain.from_iterable(before)), tuple(map(len, before))
    own[0] = replace(own[0], before=words, before_lengths=lengths)
    words, lengths = tuple(chain.from_iterable(after)), tuple(map(len, after))
    own[-1] = replace(own[-1], after=words, after_lengths=lengths)
    return TextPart(Document(text[offset : _end(run[-1])], own_sentences=tuple(own)), offset)


def _shifted(sentence: Sentence, by: int) -> Sentence:
    return replace(sentence, starts=tuple(start + by for start in sentence.starts))


def _shifted_trace(traced: TracedSentence, by: int) -> TracedSentence:
    return replace(traced, sentence=_shifted(traced.sentence, by))


def _shifted_entity(entity: Entity[CharSpan], by: int) -> Entity[CharSpan]:
    fragments = (CharSpan(span.start + by, span.end + by) for span in entity.spans)
    return Entity.from_fragments(fragments, entity.label, entity.score)
