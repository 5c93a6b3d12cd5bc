"""spaCy's DocBin (.spacy), with entities as a span group of each Doc; needs the extra "spacy".

    doc.text == "IL-2 gene\\n"        tokens: "IL-2" + space, "gene", "\\n"
    doc.spans["sc"]                  Span(doc, 0, 2, "DNA"), Span(doc, 0, 1, "protein")

Spans are counted in tokens, half-open: "end" is the first token after the entity. Scores are in
the group's `attrs["scores"]`, as spancat writes them; sentences and tags in the tokens; id and
metadata as JSON in `doc.user_data["spandet"]`. The key "ents" means `doc.ents`.

A DocBin is one compressed block, so the whole file is held in memory, unlike in other formats. It
may have up to 64 MiB, and 512 MiB unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spandet.errors import FormatError, MissingExtraError
from spandet.formats import records
from spandet.formats.source import MOST_BYTES, Parsed, Source, too_long
from spandet.formats.target import Target
from spandet.text import CharSpan, Document, Entity, Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span
    from spacy.vocab import Vocab

_ENTS = "ents"
_OURS = "spandet"
_MOST_UNPACKED = 1 << 29
_CHUNK_BYTES = 1 << 24


def read(source: Source, *, spans_key: str = "sc") -> Iterator[Parsed]:
    """Read documents from a DocBin, with spaCy's words and sentences.

    Args:
        source: The file.
        spans_key: The span group to read, or "ents" for `doc.ents`.
    """
    with source.binary() as stream:
        data = stream.read(MOST_BYTES + 1)
    _check_size(data, source)
    docs = _unpacked(data, source)
    found, others = False, set[str]()
    for number, doc in enumerate(docs):
        try:
            document = _document(doc, spans_key)
            found = found or bool(document.entities)
            others.update(_filled(doc))
            yield document
        except FormatError as error:
            yield error.at(f"{source.name}: document {number}")
        except Exception as error:  # noqa: BLE001 (see _unreadable)
            yield _unreadable(error).at(f"{source.name}: document {number}")
    if others and not found:
        raise FormatError(f"no spans are called {spans_key!r}, {_expected(others)}", source.name)


def write(documents: Iterable[Document], target: Target, *, spans_key: str = "sc") -> None:
    """Write documents to a DocBin.

    Args:
        documents: The documents.
        target: The file.
        spans_key: The span group to write, or "ents" for `doc.ents`, which allows no overlaps.

    Raises:
        FormatError: an entity is discontinuous, or does not begin and end at word boundaries.
    """
    spacy = _spacy()
    vocab = spacy.vocab.Vocab()
    packed = spacy.tokens.DocBin(store_user_data=True)
    for document in documents:
        try:
            packed.add(_doc(document, vocab, spans_key))
        except UnicodeEncodeError as error:
            bad = ord(error.object[error.start])
            what = f"character U+{bad:04X} is a lone surrogate, which spaCy cannot hold"
            raise FormatError(what) from None
    with target.binary() as out:
        out.write(packed.to_bytes())


def _spacy() -> ModuleType:
    try:
        return import_module("spacy")  # imported on use: it takes seconds and is an extra
    except ImportError:
        raise MissingExtraError(needs="the format docbin", extra="spacy") from None


def _check_size(data: bytes, source: Source) -> None:
    """Refuse a file that is too large, packed or unpacked; spaCy has no limit."""
    if len(data) > MOST_BYTES:
        raise too_long("DocBin").at(source.name)
    unzip, size = zlib.decompressobj(), 0
    try:
        while part := unzip.decompress(data, _CHUNK_BYTES):
            size, data = size + len(part), unzip.unconsumed_tail
            if size > _MOST_UNPACKED:
                raise too_long("DocBin", _MOST_UNPACKED).at(source.name)
    except zlib.error:
        return  # spaCy reports it


def _unpacked(data: bytes, source: Source) -> Iterator[Doc]:
    spacy = _spacy()
    try:
        yield from spacy.tokens.DocBin().from_bytes(data).get_docs(spacy.vocab.Vocab())
    except Exception as error:
        raise _unreadable(error).at(source.name) from error


def _unreadable(error: Exception) -> FormatError:
    """Convert any exception of spaCy, which unpacks without checks and may fail anywhere."""
    return FormatError(f"not a DocBin that spaCy can read ({type(error).__name__}: {error})")


def _document(doc: Doc, spans_key: str) -> Document:
    entities = tuple(_entities(doc, spans_key))
    ours = doc.user_data.get(_OURS)
    own = records.checked_object(records.parse_json(ours) if isinstance(ours, str) else {}, _OURS)
    id_ = records.field(own, "id", str, None)
    metadata = records.field(own, "metadata", dict, {})
    return Document(doc.text, entities, id_, metadata, tuple(sentences_of(doc)))


def _entities(doc: Doc, spans_key: str) -> Iterator[Entity[CharSpan]]:
    spans, scores = _spans_and_scores(doc, spans_key)
    if len(scores) != len(spans):
        raise FormatError(f"{len(scores)} scores for {len(spans)} spans, expected one each")
    for span, score in zip(spans, scores, strict=True):
        chars = records.checked_span(CharSpan, span.start_char, span.end_char, len(doc.text))
        yield Entity(chars, span.label_, records.read_score({"score": score}))


def _spans_and_scores(doc: Doc, key: str) -> tuple[list[Span], list[Any]]:
    if key != _ENTS and key in doc.spans:
        group = doc.spans[key]
        scores = group.attrs.get("scores", [None] * len(group))
        # spancat stores a NumPy array.
        return list(group), scores.tolist() if hasattr(scores, "tolist") else list(scores)
    ents = list(doc.ents)
    if key == _ENTS:
        return ents, [None] * len(ents)
    others = [*doc.spans, *([_ENTS] if ents else [])]
    if others:
        raise FormatError(f"no spans are called {key!r}, {_expected(others)}")
    return [], []


def _filled(doc: Doc) -> list[str]:
    """The keys of all span groups that are not empty."""
    groups = [key for key, group in doc.spans.items() if len(group)]
    return [*groups, _ENTS] if doc.ents else groups


def _expected(keys: Iterable[str]) -> str:
    return f"expected one of its own as spans_key: {', '.join(map(repr, keys))}"


def sentences_of(doc: Doc) -> Iterator[Sentence]:
    """The sentences of a Doc without white space tokens; one sentence if it has no boundaries."""
    parts: Iterable[Doc | Span] = doc.sents if doc.has_annotation("SENT_START") else [doc]
    for part in parts:
        words = [token for token in part if not token.text.isspace()]
        tags = tuple(token.tag_ for token in words)
        if words:
            yield Sentence(
                tuple(token.text for token in words),
                tuple(token.idx for token in words),
                tags if any(tags) else (),
            )


@dataclass
class _Tokens:
    """A text as spaCy tokens, each followed by one space or none."""

    texts: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    begins: list[bool] = field(default_factory=list)
    """Whether each token begins a sentence."""
    starts: dict[int, int] = field(default_factory=dict)
    """Token number by start character."""
    ends: dict[int, int] = field(default_factory=dict)
    """Token number plus one, by end character."""

    @classmethod
    def of(cls, document: Document) -> _Tokens:
        """Tokens for the words of a document and for the text between them."""
        tokens = cls()
        end = 0
        for sentence in document.sentences:
            tags = sentence.tags or [""] * len(sentence)
            for number, word in enumerate(sentence.words):
                start = sentence.starts[number]
                if start < end:
                    raise FormatError(f"the word {word!r} at {start} overlaps the one before")
                tokens.add_gap(document.text[end:start], end)
                tokens.add(word, start, tag=tags[number], begins=number == 0)
                end = start + len(word)
        tokens.add_gap(document.text[end:], end)
        return tokens

    def add(self, text: str, start: int, *, tag: str = "", begins: bool = False) -> None:
        """Append a token that is not followed by a space."""
        self.starts[start] = len(self.texts)
        self.texts.append(text)
        self.ends[start + len(text)] = len(self.texts)
        self.spaces.append(False)
        self.tags.append(tag)
        self.begins.append(begins)

    def add_gap(self, text: str, start: int) -> None:
        """Append the text between two words; its first space belongs to the token before."""
        if self.texts and text.startswith(" "):
            self.spaces[-1] = True
            text, start = text[1:], start + 1
        if text:
            self.add(text, start)


def _doc(document: Document, vocab: Vocab, spans_key: str) -> Doc:
    made = _spacy().tokens
    tokens = _Tokens.of(document)
    doc: Doc = made.Doc(
        vocab,
        words=tokens.texts,
        spaces=tokens.spaces,
        tags=tokens.tags,
        sent_starts=tokens.begins,
        user_data=_user_data(document),
    )
    bounds = [_bounds(document, entity, tokens) for entity in document.entities]
    labels = [entity.label for entity in document.entities]
    spans = [made.Span(doc, *pair, label=label) for pair, label in zip(bounds, labels, strict=True)]
    if spans_key == _ENTS:
        _check_flat(document)
        doc.ents = spans
        return doc
    scores = [entity.score for entity in document.entities]
    attrs = {"scores": scores} if any(score is not None for score in scores) else {}
    doc.spans[spans_key] = made.SpanGroup(doc, name=spans_key, spans=spans, attrs=attrs)
    return doc


def _user_data(document: Document) -> dict[str, str]:
    own = {"id": document.id, "metadata": dict(document.metadata)}
    filled = {name: value for name, value in own.items() if value not in (None, {})}
    return {_OURS: records.dump_json(filled)} if filled else {}


def _bounds(document: Document, entity: Entity[CharSpan], tokens: _Tokens) -> tuple[int, int]:
    named = _named(document, entity)
    if entity.fragments:
        raise FormatError(f"entity {named} is discontinuous, which spaCy cannot hold")
    start, end = tokens.starts.get(entity.span.start), tokens.ends.get(entity.span.end)
    if start is None or end is None:
        raise FormatError(f"entity {named} does not begin and end at word boundaries")
    return start, end


def _check_flat(document: Document) -> None:
    ordered = sorted(document.entities, key=lambda entity: entity.span)
    for entity in ordered:
        if not entity.label:
            named = _named(document, entity)
            raise FormatError(f"entity {named} has an empty label, which doc.ents cannot hold")
    for left, right in pairwise(ordered):
        if left.span.overlaps(right.span):
            pair = f"{_named(document, left)} overlaps {_named(document, right)}"
            raise FormatError(f"entity {pair}, which doc.ents cannot hold")


def _named(document: Document, entity: Entity[CharSpan]) -> str:
    span = entity.span
    text = document.text_of(entity)
    return f"{text!r} ({entity.label}, characters {span.start}:{span.end})"
