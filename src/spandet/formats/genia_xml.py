"""GENIA corpus XML (version 3.02): terms are nested `<cons>` elements inside sentences.

    <set><article><articleinfo><bibliomisc>MEDLINE:1</bibliomisc></articleinfo>
    <title><sentence><cons sem="G#DNA_molecule"><cons sem="G#protein_molecule">IL-9</cons>
    gene</cons> in <cons sem="G#cell_type">T cells</cons>.</sentence></title></article></set>

There are no offsets: an entity is what its element holds, without white space at its ends. An
article is a document; its text is its sentences as they stand, each after a line feed. Words have
a border at every `<cons>` tag and at white space, so they may touch ("IL-9", "-induced"). With
`<w c="NN">` inside (the part-of-speech edition), those are borders too and give the tags.

Five labels come from the classes: protein, DNA and RNA from G#protein_…, G#DNA_…, G#RNA_…, and
cell_line and cell_type. All other classes are left out, and so are coordinations as a whole
("(AND G#cell_type G#cell_type)") with their parts without a class.
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
"""Marks a tag between characters. XML cannot contain it, and `str.split` takes it for a space."""
_PARTS = ("title", "abstract")

_Mark = tuple[int, int, str]
"""Something with a name from one place to another."""


def read(source: Source, *, all_labels: bool = False) -> Iterator[Parsed]:
    """Documents from GENIA XML.

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
    """The label that a `sem` class stands for; None for those that are left out."""
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
        self._listen_outside()
        parser.StartElementHandler = self._root

    def take(self, name: str) -> list[Parsed]:
        """What has been read since the last time."""
        done, self._done = self._done, []
        return [
            item if isinstance(item, Document) else FormatError(item[1], f"{name}:{item[0]}")
            for item in done
        ]

    def _listen_outside(self) -> None:
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def _listen_inside(self, article: _Article) -> None:
        """Inside a sentence, where the time goes, events take the shortest way."""
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
            self._listen_inside(self._article)
        elif name == "article":
            if self._article is not None:
                raise FormatError("an <article> inside an <article>")
            self._article = _Article(leave_sentence=self._listen_outside)
        elif name == "bibliomisc":
            self._id = []
        elif name in _PARTS:
            self._part = name
        elif name == "cons":
            self._complain("a <cons> outside a <sentence>")

    def _text(self, data: str) -> None:
        if self._id is not None:
            self._id.append(data)
        elif self._part is not None and not data.isspace():
            self._complain(f"text in the {self._part} outside a <sentence>: {data.strip()[:40]!r}")

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
            self._complain("the article has no id in a <bibliomisc>")
        if article.problem is not None:
            self._done.append(article.problem)
            return
        self._seen[article.id] += 1
        if self._seen[article.id] > 1:  # the corpus has one article twice, annotated differently
            article.id += f"#{self._seen[article.id]}"
        self._done.append(article.document(all_labels=self._all_labels))

    def _complain(self, what: str) -> None:
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
        """What sentences hold, a `_BORDER` for every tag, a line feed between sentences."""
        self._sentences: list[tuple[int, str | None]] = []
        """The chunk that each begins with, and its part of the article."""
        self._terms: list[_Mark] = []
        self._tagged: list[_Mark] = []
        self._open: list[tuple[int, str | None]] = []
        self._leave_sentence = leave_sentence

    def begin_sentence(self, part: str | None) -> None:
        """A sentence begins."""
        if self._sentences:
            self.chunks.append("\n")
        self._sentences.append((len(self.chunks), part))

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """A tag begins inside a sentence."""
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
        """A tag ends inside a sentence, or the sentence ends."""
        if name in ("cons", "w"):
            begin, label = self._open.pop()
            if label is not None:
                marks = self._terms if name == "cons" else self._tagged
                marks.append((begin, len(self.chunks), label))
            self.chunks.append(_BORDER)
        elif name == "sentence":
            self._leave_sentence()

    def document(self, *, all_labels: bool) -> Document:
        """The whole article."""
        marked = "".join(self.chunks)
        words = marked.split()
        text = marked.replace(_BORDER, "")
        at, find = 0, text.find  # only spaces stand before the next word, so `find` is exact
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


def _in_words(marks: list[_Mark], offsets: list[int], starts: list[int]) -> list[_Mark]:
    """The marks counted in words, not chunks; those around no word are left out."""
    return [
        (first, end, name)
        for begin, behind, name in marks
        if (first := bisect_left(starts, offsets[begin]))
        < (end := bisect_left(starts, offsets[behind]))
    ]


def _one_each(spans: list[_Mark]) -> Iterator[_Mark]:
    """One label per span: protein wins, else the outermost term."""
    labels: dict[tuple[int, int], str] = {}
    for start, end, label in spans:
        if label == "protein" or (start, end) not in labels:
            labels[start, end] = label
    return ((start, end, label) for (start, end), label in labels.items())


def _tags(tagged: list[_Mark], words: int) -> list[str]:
    """One tag per word; empty for words outside a `<w>`."""
    tags = [""] * words
    for first, end, tag in tagged:
        tags[first:end] = [tag] * (end - first)
    return tags
