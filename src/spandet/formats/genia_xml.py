"""GENIA corpus XML (version 3.02): terms are nested `<cons>` elements inside sentences.

    <set><article><articleinfo><bibliomisc>MEDLINE:1</bibliomisc></articleinfo>
    <title><sentence><cons sem="G#DNA_molecule"><cons sem="G#protein_molecule">IL-9</cons>
    gene</cons> in <cons sem="G#cell_type">T cells</cons>.</sentence></title></article></set>

There are no offsets: an entity is the text of its element, without white space at its ends. An
article is a document; its text is its sentences, unchanged, joined by line feeds. Words end at
white space and at every `<cons>` tag, so they may touch ("IL-9", "-induced"). In the part-of-speech
edition, they also end at every `<w c="NN">` tag, which gives their part of speech.

Five labels are read: protein, DNA and RNA from the classes G#protein_…, G#DNA_…, G#RNA_…, and
cell_line and cell_type. All other classes are ignored, and so are coordinations as a whole
("(AND G#cell_type G#cell_type)") and their members without a class.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate
from xml.parsers import expat

from spandet.errors import FormatError
from spandet.formats.markup import check_markup, check_root, feed, new_parser
from spandet.formats.source import Parsed, Source
from spandet.text import CharSpan, Document, Entity, Sentence

_CLASS = re.compile(r"G#(?:(protein|DNA|RNA)_.*|(cell_line|cell_type))")
_BORDER = "\x1f"
"""Replaces a tag in the text. XML cannot contain this character; `str.split` splits at it."""
_PARTS = ("title", "abstract")

_Range = tuple[int, int, str]
"""Start, end and name."""


def read(source: Source, *, all_labels: bool = False) -> Iterator[Parsed]:
    """Read documents from GENIA XML.

    Args:
        source: The file.
        all_labels: Keep every label of a span. Published versions of the corpus keep one: protein
            if it is among them, else the outermost.
    """
    parser = new_parser()
    articles = _Articles(parser, all_labels=all_labels)
    begin = 0
    try:
        for end in feed(source, parser):
            done = articles.take(source.name)
            begin = end if done else begin
            check_markup(end - begin, source)
            yield from done
    except FormatError:
        yield from articles.take(source.name)
        raise


@lru_cache(maxsize=1024)
def label_of(semantic_class: str | None) -> str | None:
    """The label of a `sem` class; None for classes that are ignored."""
    found = _CLASS.fullmatch(semantic_class or "")
    return found and (found[1] or found[2])


class _Articles:
    """Turns the events of an XML parser into documents."""

    def __init__(self, parser: expat.XMLParserType, *, all_labels: bool) -> None:
        self._parser = parser
        self._all_labels = all_labels
        self._seen: Counter[str] = Counter()
        self._done: list[Document | tuple[int, str]] = []
        self._article: _Article | None = None
        self._id: list[str] | None = None
        self._part: str | None = None
        self._handle_outside()
        parser.StartElementHandler = self._root

    def take(self, name: str) -> list[Parsed]:
        """Return and forget the documents and errors read since the last call."""
        done, self._done = self._done, []
        return [
            item if isinstance(item, Document) else FormatError(item[1], f"{name}:{item[0]}")
            for item in done
        ]

    def _handle_outside(self) -> None:
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def _handle_inside(self, article: _Article) -> None:
        """Inside a sentence, the parser calls the article directly, for speed."""
        self._parser.StartElementHandler = article.open
        self._parser.EndElementHandler = article.close
        self._parser.CharacterDataHandler = article.chunks.append

    def _root(self, name: str, _: dict[str, str]) -> None:
        check_root(name, "set")
        self._parser.StartElementHandler = self._start

    def _start(self, name: str, _: dict[str, str]) -> None:
        if name == "sentence":
            if self._article is None:
                raise FormatError("a <sentence> outside an <article>")
            self._article.begin_sentence(self._part)
            self._handle_inside(self._article)
        elif name == "article":
            if self._article is not None:
                raise FormatError("an <article> inside an <article>")
            self._article = _Article(leave_sentence=self._handle_outside)
        elif name == "bibliomisc":
            self._id = []
        elif name in _PARTS:
            self._part = name
        elif name == "cons":
            self._report("a <cons> outside a <sentence>")

    def _text(self, data: str) -> None:
        if self._id is not None:
            self._id.append(data)
        elif self._part is not None and not data.isspace():
            self._report(f"text in the {self._part} outside a <sentence>: {data.strip()[:40]!r}")

    def _end(self, name: str) -> None:
        if name == "bibliomisc" and self._article is not None and self._id is not None:
            self._article.id = "".join(self._id).strip()
            self._id = None
        elif name in _PARTS:
            self._part = None
        elif name == "article" and self._article is not None:
            self._finish(self._article)
            self._article = None

    def _finish(self, article: _Article) -> None:
        if not article.id:
            self._report("the article has no id in a <bibliomisc>")
        if article.problem is not None:
            self._done.append(article.problem)
            return
        self._seen[article.id] += 1
        if self._seen[article.id] > 1:  # the corpus has one article twice, annotated differently
            article.id += f"#{self._seen[article.id]}"
        self._done.append(article.document(all_labels=self._all_labels))

    def _report(self, what: str) -> None:
        if self._article is None:
            raise FormatError(what)
        if self._article.problem is None:
            self._article.problem = (self._parser.CurrentLineNumber, what)


class _Article:
    """An article while it is being read: its characters in chunks, and the tags between them."""

    def __init__(self, leave_sentence: Callable[[], None]) -> None:
        self.id = ""
        self.problem: tuple[int, str] | None = None
        self.chunks: list[str] = []
        """Text of the sentences, a `_BORDER` for every tag, a line feed between sentences."""
        self._sentences: list[tuple[int, str | None]] = []
        """First chunk of each sentence, and its part of the article."""
        self._terms: list[_Range] = []
        self._tagged: list[_Range] = []
        self._open: list[tuple[int, str | None]] = []
        self._leave_sentence = leave_sentence

    def begin_sentence(self, part: str | None) -> None:
        """Begin a sentence."""
        if self._sentences:
            self.chunks.append("\n")
        self._sentences.append((len(self.chunks), part))

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """Handle an opening tag inside a sentence."""
        if name == "cons":
            label = label_of(attributes.get("sem"))
        elif name == "w":
            label = attributes.get("c")
        elif name == "sentence":
            raise FormatError("a <sentence> inside a <sentence>")
        else:
            return
        self._open.append((len(self.chunks), label))
        self.chunks.append(_BORDER)

    def close(self, name: str) -> None:
        """Handle a closing tag inside a sentence, or that of the sentence."""
        if name in ("cons", "w"):
            begin, label = self._open.pop()
            if label is not None:
                ranges = self._terms if name == "cons" else self._tagged
                ranges.append((begin, len(self.chunks), label))
            self.chunks.append(_BORDER)
        elif name == "sentence":
            self._leave_sentence()

    def document(self, *, all_labels: bool) -> Document:
        """Build the document of the article."""
        with_borders = "".join(self.chunks)
        words = with_borders.split()
        text = with_borders.replace(_BORDER, "")
        at, find = 0, text.find  # only spaces precede the next word, so `find` is exact
        skips = [0, *map(len, words)]
        starts = [at := find(word, at + skip) for word, skip in zip(words, skips, strict=False)]
        sizes = [0 if chunk == _BORDER else len(chunk) for chunk in self.chunks]
        offsets = list(accumulate(sizes, initial=0))
        self._terms.sort()  # outer ones first
        spans = [
            (starts[first], starts[end - 1] + skips[end], label)
            for first, end, label in _in_words(self._terms, offsets, starts)
        ]
        kept = dict.fromkeys(spans) if all_labels else _one_each(spans)
        entities = [Entity(CharSpan(start, end), label) for start, end, label in kept]
        tags = _tags(_in_words(self._tagged, offsets, starts), len(words)) if self._tagged else []
        sentences = self._split(words, starts, tags, offsets)
        return Document(text, tuple(entities), self.id, {}, tuple(sentences))

    def _split(
        self, words: list[str], starts: list[int], tags: list[str], offsets: list[int]
    ) -> Iterator[Sentence]:
        borders = [bisect_left(starts, offsets[chunk]) for chunk, _ in self._sentences]
        bounds = zip(borders, [*borders[1:], len(words)], strict=True)
        for number, (first, end) in enumerate(bounds):
            own_tags = tags[first:end]
            part = self._sentences[number][1]
            metadata = {"sent_id": f"{self.id}-{number}"} | ({"part": part} if part else {})
            yield Sentence(
                tuple(words[first:end]),
                tuple(starts[first:end]),
                tuple(own_tags) if "" not in own_tags else (),
                metadata=metadata,
            )


def _in_words(ranges: list[_Range], offsets: list[int], starts: list[int]) -> list[_Range]:
    """Convert ranges of chunks to ranges of words; those without a word are removed."""
    return [
        (first, end, name)
        for begin, behind, name in ranges
        if (first := bisect_left(starts, offsets[begin]))
        < (end := bisect_left(starts, offsets[behind]))
    ]


def _one_each(spans: list[_Range]) -> Iterator[_Range]:
    """Keep one label per span: protein if it is among them, else that of the outermost term."""
    labels: dict[tuple[int, int], str] = {}
    for start, end, label in spans:
        if label == "protein" or (start, end) not in labels:
            labels[start, end] = label
    return ((start, end, label) for (start, end), label in labels.items())


def _tags(tagged: list[_Range], words: int) -> list[str]:
    """One tag per word; empty for words outside a `<w>`."""
    tags = [""] * words
    for first, end, tag in tagged:
        tags[first:end] = [tag] * (end - first)
    return tags
