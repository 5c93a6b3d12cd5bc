"""GermEval 2014: a word per line with its number and two layers of BIO tags, outer and inner.

    #	https://example.org/korfmann [2009-10-17]
    1	Universität	B-ORG	O
    2	Tübingen	I-ORG	B-LOC

Columns are separated by tabs, sentences by empty lines. Entities are given by tags, not by offsets.
Each sentence is a document. The comment before a sentence is kept as `source` in the sentence's
metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from spandet.errors import FormatError
from spandet.formats.columns import Block, check_cells, need_columns, sentences
from spandet.formats.records import shown
from spandet.formats.source import Parsed, SizeLimit, Source
from spandet.formats.tag_schemes import SCHEMES, decode, encode, layers
from spandet.formats.target import Target
from spandet.text import Document, WordRow

_COMMENT = "#"
_SOURCE = "source"
_FORBIDDEN = re.compile(r"[\t\r\n]")
_BEGINNING = re.compile(r"\ufeff?\s*(#[^\n]*\n)*1(\t[^\t\n]+){3}(\n|$)")


def read(source: Source) -> Iterator[Parsed]:
    """Read documents of one sentence each from the two-layer TSV."""
    comments: list[str] = []
    limit = SizeLimit(source.name, "comment")
    for _, part in sentences(source, _COMMENT, _row):
        if isinstance(part, str):
            limit.add(len(part))
            comments.append(part.removeprefix(_COMMENT).removeprefix("\t"))
            continue
        if isinstance(part, FormatError):
            yield part
        else:
            metadata = {_SOURCE: "\n".join(comments)}
            yield Document.from_rows([replace(part, metadata=metadata) if comments else part])
        comments, limit = [], SizeLimit(source.name, "comment")


def write(documents: Iterable[Document], target: Target) -> None:
    """Write documents as the two-layer TSV, sentence by sentence.

    Raises:
        FormatError: entities cross, are discontinuous or nest deeper than two layers.
    """
    with target.text() as out:
        for document in documents:
            if not document.sentences:
                raise FormatError("the document has no sentence, which this format cannot hold")
            for number, row in enumerate(document.rows()):
                try:
                    out.write(_lines(row))
                except FormatError as error:
                    raise error.inside(f"sentence {number}") from None


def matches_head(head: str) -> bool:
    """Whether the first line after the comments is word 1 with two tags."""
    return _BEGINNING.match(head) is not None


def _row(block: Block) -> WordRow:
    columns = block.columns()
    if len(columns) != 4:
        raise need_columns(block, len(columns), "4: number, word, outer tag and inner tag")
    numbers, words, outer, inner = columns
    expected = _numbers(len(words))
    if numbers != expected:
        word = next(word for word, number in enumerate(numbers) if number != expected[word])
        what = f"the word's number is {shown(numbers[word])}, expected {expected[word]}"
        raise block.error(word, what)
    if "" in words:
        raise block.error(words.index(""), "the word is empty, expected one in the second column")
    return WordRow(words, [*decode(outer, block.error), *decode(inner, block.error)])


def _lines(row: WordRow) -> str:
    if not row.words:
        raise FormatError("the sentence is empty, which this format cannot hold")
    check_cells(row.words, "word", _FORBIDDEN)
    outer, inner = layers(row, most=2, holder="two layers")
    check_cells([one.label for one in (*outer, *inner)], "the label of entity", _FORBIDDEN)
    length = len(row.words)
    columns = (
        _numbers(length),
        row.words,
        encode(length, outer, SCHEMES["bio"]),
        encode(length, inner, SCHEMES["bio"]),
    )
    return _comment(row) + "\n".join(map("\t".join, zip(*columns, strict=True))) + "\n\n"


@lru_cache(maxsize=256)
def _numbers(length: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, length + 1)))


def _comment(row: WordRow) -> str:
    source = row.metadata.get(_SOURCE)
    if not isinstance(source, str):
        return ""
    if "\r" in source:
        raise FormatError(f"source is {shown(source)}, which a comment line cannot hold")
    return "".join(f"{_COMMENT}\t{line}\n" for line in source.split("\n"))
