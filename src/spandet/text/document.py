"""Documents: a text, its sentences in order, and the entities in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from spandet.errors import FormatError
from spandet.text.entity import Entity
from spandet.text.plain import plain_document
from spandet.text.sentence import Sentence
from spandet.text.spans import CharSpan, WordSpan


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
    """The sentences that its corpus gave it; None where the text came raw."""

    def __post_init__(self) -> None:
        length = len(self.text)
        for entity in self.entities:
            if entity.span.end > length:
                raise ValueError(f"{entity} ends after the text's {length} characters")

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """Its own sentences or, for raw text, those that our splitter and tokeniser find."""
        if self.own_sentences is not None:
            return self.own_sentences
        # Its patterns take longer to load than all the rest, and much work needs none of them.
        from spandet.text.segmentation import segment  # noqa: PLC0415

        return segment(self.text)

    def text_of(self, entity: Entity[CharSpan]) -> str:
        """The words of an entity as they stand in the text; a gap is shown as " … "."""
        return " … ".join(self.text[piece.start : piece.end] for piece in entity.pieces)

    def to_dict(self) -> dict[str, Any]:
        """Id, text and entities as plain values (see `spandet.text.plain`)."""
        return plain_document(self)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[WordRow],
        *,
        id: str | None = None,  # noqa: A002 (the field's name)
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """A pre-tokenised document: words are joined by a space, sentences by a line feed."""
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
        """Its sentences counted in words, for formats and models that know only words.

        Raises:
            FormatError: an entity cuts a word or leaves its sentence.
        """
        by_sentence, misfits = self.entities_in_words()
        for entity in misfits:
            raise FormatError(
                f"entity {self.text_of(entity)!r} ({entity.label}, characters "
                f"{entity.span.start}:{entity.span.end}) does not begin and end at word "
                f"borders of one sentence"
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
        """Entities counted in words, sentence by sentence, and those that words cannot express."""
        own: list[list[Entity[WordSpan]]] = [[] for _ in self.sentences]
        misfits: list[Entity[CharSpan]] = []
        filled = [i for i, sentence in enumerate(self.sentences) if sentence.words]
        starts = [self.sentences[i].starts[0] for i in filled]
        for entity in self.entities:
            found = bisect_right(starts, entity.span.start) - 1
            in_words = _in_words(entity, self.sentences[filled[found]]) if found >= 0 else None
            if in_words is None:
                misfits.append(entity)
            else:
                own[filled[found]].append(in_words)
        return own, misfits


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
    pieces = tuple(sentence.chars_of(piece) for piece in entity.fragments)
    return Entity(span, entity.label, entity.score, pieces)


def _in_words(entity: Entity[CharSpan], sentence: Sentence) -> Entity[WordSpan] | None:
    span = sentence.words_of(entity.span)
    pieces = tuple(sentence.words_of(piece) for piece in entity.fragments)
    whole = tuple(piece for piece in pieces if piece is not None)
    if span is None or len(whole) < len(pieces):
        return None
    if len(whole) > 1:  # a gap of white space only is no gap between words
        return Entity.from_fragments(whole, entity.label, entity.score)
    return Entity(span, entity.label, entity.score)
