"""CoNLL columns: a word per line, its tag in the last column, an empty line after a sentence.

    -DOCSTART- (a1)

    IL-2 NN B-DNA
    gene NN I-DNA
    works VBZ O

Entities are given by tags (see tag_schemes), not by offsets. Columns are separated by tabs or
spaces; with three or more, the second is the part of speech. Columns between it and the tag are
ignored, but a layer of entity tags there is an error. The sentences between two -DOCSTART- lines
are one document; before the first, and in a file without any, each sentence is a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from spandet.errors import FormatError, UsageError
from spandet.formats import germeval
from spandet.formats.columns import Block, check_cells, need_columns, sentences
from spandet.formats.source import Parsed, Rows, Source
from spandet.formats.tag_schemes import SCHEMES, Scheme, decode, encode, layers
from spandet.formats.target import Target
from spandet.formats.unread import check_columns
from spandet.text import Document, WordRow

_BORDER = "-DOCSTART-"
_ID = re.compile(_BORDER + r"[ \t]+\((.*)\)[ \t]*")
_LINE_END = re.compile(r"[\r\n]")
_FORBIDDEN = re.compile(r"[ \t\r\n]")
_BORDER_OR_SPACE = re.compile(rf"[ \t\r\n]|{_BORDER}")
_BEGINNING = re.compile(
    r"\ufeff?\s*(-DOCSTART-|[^\s{\[<][^\n]*[ \t](O|[BIESMLU]-\S+)[ \t\r]*(\n|$))"
)


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from CoNLL columns in any of the tag schemes."""
    border: str | None = None
    rows = Rows(source)
    for _, part in sentences(source, _BORDER, _row):
        if isinstance(part, FormatError):
            yield part
        elif isinstance(part, str):
            if border is not None:
                yield _document(border, rows)
            border, rows = part, Rows(source)
        elif border is None:
            yield Document.from_rows([part])
        else:
            rows.append(part)
    if border is not None:
        yield _document(border, rows)


def write(documents: Iterable[Document], target: Target, *, scheme: str = "bio") -> None:
    """Write documents as CoNLL columns: word, part of speech if there is one, tag.

    Raises:
        FormatError: entities overlap or are discontinuous, or a word or label has white space.
    """
    if scheme not in SCHEMES:
        raise UsageError(f"no tag scheme is called {scheme!r}; there are {', '.join(SCHEMES)}")
    borders = False
    with target.text() as out:
        for document in documents:
            # Documents of one sentence without an id need no -DOCSTART- line; but after the first
            # such line every document needs one, or it would be read as part of the one before.
            borders = borders or _needs_border(document)
            if borders:
                out.write(_border(document.id))
            for number, row in enumerate(document.rows()):
                try:
                    out.write(_lines(row, SCHEMES[scheme]))
                except FormatError as error:
                    raise error.inside(f"sentence {number}") from None


def matches_head(head: str) -> bool:
    """Whether the first line ends in a tag or is a -DOCSTART- line."""
    return _BEGINNING.match(head) is not None and not germeval.matches_head(head)


def _document(border: str, rows: Sequence[WordRow]) -> Document:
    found = _ID.fullmatch(border)
    return Document.from_rows(rows, id=found[1] if found else None)


def _row(block: Block) -> WordRow:
    columns = block.columns()
    if len(columns) < 2:
        raise need_columns(block, len(columns), "a word and a tag")
    words = columns[0]
    if "" in words:
        raise block.error(words.index(""), "the word is empty, expected one before the first tab")
    check_columns(block, words, columns, read=(0, len(columns) - 1))
    return WordRow(words, decode(columns[-1], block.error), columns[1] if len(columns) > 2 else ())


def _needs_border(document: Document) -> bool:
    if document.id is not None or len(document.sentences) != 1:
        return True
    # As the first character of a file it would be read as a byte order mark.
    return "".join(document.sentences[0].words).startswith("\ufeff")


def _border(id_: str | None) -> str:
    if id_ is None:
        return f"{_BORDER} O\n\n"
    if _LINE_END.search(id_):
        raise FormatError(f"the id has a line end, which a {_BORDER} line cannot hold")
    return f"{_BORDER} ({id_})\n\n"


def _lines(row: WordRow, scheme: Scheme) -> str:
    if not row.words:
        raise FormatError("the sentence is empty, which CoNLL columns cannot hold")
    check_cells(row.words, "word", _BORDER_OR_SPACE)
    check_cells(row.tags, "the part of speech of word", _FORBIDDEN)
    (entities,) = layers(row, most=1, holder="CoNLL columns")
    check_cells([entity.label for entity in entities], "the label of entity", _FORBIDDEN)
    tags = encode(len(row.words), entities, scheme)
    columns = (row.words, row.tags, tags) if row.tags else (row.words, tags)
    return "\n".join(map(" ".join, zip(*columns, strict=True))) + "\n\n"
