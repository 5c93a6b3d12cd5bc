"""Documents: a text, its sentences in order, and the entities in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from spandet.errors import FormatError
from spandet.text.dicts import document_to_dict
from spandet.text.entity import CharSpan, Entity, WordSpan
from spandet.text.sentence import Sentence


@dataclass(frozen=True, slots=True)
class WordRow:
    """One sentence as pre-tokenised corpora write it: everything is counted in words."""

    words: Sequence[str]
    entities: Sequence[Entity[WordSpan]] = ()
    tags: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A text with its sentences and entities; every offset counts characters of `text`."""

    text: str
    entities: tuple[Entity[CharSpan], ...] = ()
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    own_sentences: tuple[Sentence, ...] | None = None
    """The sentences and words given by its corpus; None for raw text."""

    def __post_init__(self) -> None:
        length = len(self.text)
        for entity in self.entities:
            if entity.span.end > length:
                raise ValueError(f"{entity} ends after the text's {length} characters")

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Its own sentences or, for raw text, those of the built-in splitter and tokeniser."""
        if self.own_sentences is not None:
            return self.own_sentences
        # Imported here because its patterns take long to compile and are often not needed.
        from spandet.text.segmentation import segment  # noqa: PLC0415

        return segment(self.text)

    def text_of(self, entity: Entity[CharSpan]) -> str:
        """The text of an entity; a gap is shown as " … "."""
        return " … ".join(self.text[span.start : span.end] for span in entity.spans)

    def to_dict(self) -> dict[str, Any]:
        """Its id, text and entities as plain values (see `spandet.text.dicts`)."""
        return document_to_dict(self)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[WordRow],
        *,
        id: str | None = None,  # noqa: A002 (the field's name)
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Build a document from words: they are joined by spaces, sentences by line feeds."""
        sentences: list[Sentence] = []
        entities: list[Entity[CharSpan]] = []
        lines: list[str] = []
        offset = 0
        for row in rows:
            sentence = _placed(row, offset)
            sentences.append(sentence)
            entities.extend(_in_chars(entity, sentence) for entity in row.entities)
            lines.append(" ".join(row.words))
            offset += len(lines[-1]) + 1
        return cls("\n".join(lines), tuple(entities), id, metadata or {}, tuple(sentences))

    def rows(self) -> Iterator[WordRow]:
        """Its sentences with entities counted in words, for formats and models based on words.

        Raises:
            FormatError: an entity begins or ends inside a word, or spans two sentences.
        """
        by_sentence, unaligned = self.entities_in_words()
        for entity in unaligned:
            raise FormatError(
                f"entity {self.text_of(entity)!r} ({entity.label}, characters "
                f"{entity.span.start}:{entity.span.end}) does not begin and end at word "
                f"boundaries of one sentence"
            )
        for sentence, own in zip(self.sentences, by_sentence, strict=True):
            yield WordRow(
                sentence.words,
                own,
                sentence.tags,
                sentence.before,
                sentence.after,
                sentence.metadata,
            )

    def entities_in_words(self) -> tuple[list[list[Entity[WordSpan]]], list[Entity[CharSpan]]]:
        """Entities counted in words, per sentence, and those that match no words exactly."""
        own: list[list[Entity[WordSpan]]] = [[] for _ in self.sentences]
        unaligned: list[Entity[CharSpan]] = []
        filled = [i for i, sentence in enumerate(self.sentences) if sentence.words]
        starts = [self.sentences[i].starts[0] for i in filled]
        for entity in self.entities:
            found = bisect_right(starts, entity.span.start) - 1
            in_words = _in_words(entity, self.sentences[filled[found]]) if found >= 0 else None
            if in_words is None:
                unaligned.append(entity)
            else:
                own[filled[found]].append(in_words)
        return own, unaligned


def _placed(row: WordRow, offset: int) -> Sentence:
    starts = accumulate([length + 1 for length in map(len, row.words)], initial=offset)
    return Sentence(
        tuple(row.words),
        tuple(starts)[:-1],
        tuple(row.tags),
        tuple(row.before),
        tuple(row.after),
        row.metadata,
    )


def _in_chars(entity: Entity[WordSpan], sentence: Sentence) -> Entity[CharSpan]:
    span = sentence.chars_of(entity.span)
    fragments = tuple(sentence.chars_of(fragment) for fragment in entity.fragments)
    return Entity(span, entity.label, entity.score, fragments)


def _in_words(entity: Entity[CharSpan], sentence: Sentence) -> Entity[WordSpan] | None:
    span = sentence.words_of(entity.span)
    fragments = [sentence.words_of(fragment) for fragment in entity.fragments]
    aligned = [fragment for fragment in fragments if fragment is not None]
    if span is None or len(aligned) < len(fragments):
        return None
    if len(aligned) > 1:  # fragments with only white space between them are merged
        return Entity.from_fragments(aligned, entity.label, entity.score)
    return Entity(span, entity.label, entity.score)
