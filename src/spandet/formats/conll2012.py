"""CoNLL-2012 (OntoNotes): a word per line, named entities as brackets in the eleventh column.

    #begin document (nw/own/00/own_0001); part 000
    nw/own/00/own_0001  0  0  Acme    NNP  (NP*  -  -  -  -  (ORG*  -
    nw/own/00/own_0001  0  1  Europe  NNP  *)    -  -  -  -  *)     -

    #end document

`(ORG*` begins an entity at its word, `*)` ends it after its word, and `(GPE)` is an entity of one
word. The word is the fourth column, its part of speech the fifth; all others are ignored. Each part
is a document, and its id is name/part: "nw/own/00/own_0001/000".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spandet.errors import FormatError
from spandet.formats.columns import Block, need_columns, sentences
from spandet.formats.records import shown
from spandet.formats.source import Parsed, Rows, Source
from spandet.formats.unread import check_columns
from spandet.text import Document, Entity, WordRow, WordSpan

_WORD, _TAG, _SPEAKER, _NAMES = 3, 4, 9, 10
_BEGIN = re.compile(r"#begin document \((.+)\);?(?: part ([0-9]+))?\s*")
_END = re.compile(r"#end document\s*")
# Opening brackets, a star for the word, closing brackets; star or closing bracket may be missing.
_BRACKETS = re.compile(r"(?!\))(?=.*[*)])((?:\([^()*]+)*)\*?(\)*)")


def read(source: Source) -> Iterator[Parsed]:
    """Read documents from CoNLL-2012 columns, one per part."""
    name: str | None = None  # of the current document
    rows = Rows(source)
    for number, part in sentences(source, "#", _row):
        if isinstance(part, FormatError):
            yield part
        elif isinstance(part, WordRow) and name is not None:
            rows.append(part)
        elif isinstance(part, str) and (begin := _BEGIN.fullmatch(part)):
            if name is not None:
                yield _unfinished(name, f"{source.name}:{number}")
            name, rows = "/".join(filter(None, begin.groups())), Rows(source)
        elif isinstance(part, str) and name is not None and _END.fullmatch(part):
            yield Document.from_rows(rows, id=name)
            name = None
        else:
            yield _misplaced(part, name).at(f"{source.name}:{number}")
    if name is not None:
        yield _unfinished(name, source.name)


def matches_head(head: str) -> bool:
    """Whether the file begins with a `#begin document` line."""
    return head.lstrip("\ufeff \t\r\n").startswith("#begin document")


def _unfinished(name: str, place: str) -> FormatError:
    return FormatError(f"the document {name} has no end, expected #end document", place)


def _misplaced(part: WordRow | str, document: str | None) -> FormatError:
    found = shown(part) if isinstance(part, str) else "a sentence"
    expected = "#begin document (NAME); part 000" if document is None else "#end document"
    return FormatError(f"found {found}, expected {expected}")


def _row(block: Block) -> WordRow:
    columns = block.columns()
    if len(columns) <= _NAMES:
        raise need_columns(block, len(columns), f"at least {_NAMES + 1}")
    words = columns[_WORD]
    if "" in words:
        raise block.error(words.index(""), "the word is empty, expected one in the fourth column")
    check_columns(block, words, columns, read=(_WORD, _SPEAKER, _NAMES))
    return WordRow(words, _entities(columns[_NAMES], block), columns[_TAG])


def _entities(cells: Sequence[str], block: Block) -> list[Entity[WordSpan]]:
    """Parse the entities of a sentence, sorted by start, outer before inner ones."""
    found: list[Entity[WordSpan]] = []
    opened: list[tuple[int, str]] = []
    for word, cell in enumerate(cells):
        if cell == "*":
            continue
        brackets = _BRACKETS.fullmatch(cell)
        if brackets is None:
            raise block.error(
                word, f"the name is {shown(cell)}, expected (LABEL*, *, *) or (LABEL)"
            )
        opened.extend((word, label) for label in brackets[1].split("(")[1:])
        for _ in brackets[2]:
            if not opened:
                raise block.error(word, f"the name is {shown(cell)}, but none is open to be closed")
            start, label = opened.pop()
            found.append(Entity(WordSpan(start, word + 1), label))
    if opened:
        start, label = opened[-1]
        raise block.error(start, f"the {label} name that begins here has no end in its sentence")
    found.reverse()  # of two equal spans the outer one ends last; the stable sort puts it first
    return sorted(found, key=lambda one: (one.span.start, -one.span.end))
