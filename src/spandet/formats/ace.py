"""ACE 2004 and 2005: mentions in `NAME.apf.xml`, the text in `NAME.sgm` beside it.

    <source_file><document DOCID="a1"><entity ID="E1" TYPE="PER"><entity_mention ID="E1-1">
    <extent><charseq START="1" END="9">our mayor</charseq></extent>
    <head><charseq START="5" END="9">mayor</charseq></head>
    </entity_mention></entity></document></source_file>

    <DOC>
    our mayor</DOC>

END is the last character, inclusive. Offsets count the characters of the .sgm without its tags;
line feeds are counted, and `&amp;` counts as five characters. The document's text is that text, so
offsets are used unchanged. The text of `<charseq>` must be equal to the text at its offsets. The
label is the entity's TYPE; times, values, relations and events are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from spandet.errors import FormatError
from spandet.formats.markup import attribute, check_mention, child, number, read_tree
from spandet.formats.records import checked_span
from spandet.formats.source import Parsed, Source
from spandet.text import CharSpan, Document, Entity

SUFFIX = ".apf.xml"
TEXT_SUFFIXES = (".sgm",)
_TAG = re.compile(r"<[^>]*>")


def read(source: Source, *, heads: bool = False) -> Iterator[Parsed]:
    """Read the document of an .apf.xml file.

    Args:
        source: The annotation; its text is in the .sgm file in the same folder.
        heads: Read the head of each mention ("mayor") instead of its full extent ("our mayor").
    """
    try:
        yield _document(source, "head" if heads else "extent")
    except FormatError as error:
        yield error.at(source.name)


def _document(source: Source, part: str) -> Document:
    tree = read_tree(source, "source_file")
    text = _text_beside(source)
    entities = []
    for entity in tree.iter("entity"):
        label = attribute(entity, "TYPE")
        for mention in entity.iter("entity_mention"):
            try:
                span = _span(child(child(mention, part), "charseq"), text)
            except FormatError as error:
                raise error.inside(f"entity_mention {mention.get('ID')}") from None
            entities.append(Entity(span, label))
    # The file lists mentions by entity; documents list them in the order of the text.
    entities.sort(key=lambda entity: (entity.span.start, -entity.span.end))
    name = child(tree, "document").get("DOCID", source.stem.removesuffix(".apf"))
    return Document(text, tuple(entities), name)


def _span(charseq: Element, text: str) -> CharSpan:
    start, last = number(charseq, "START"), number(charseq, "END")
    if start > last:
        raise FormatError(f"START {start} is after END {last}; END is the last character here")
    span = checked_span(CharSpan, start, last + 1, len(text))
    check_mention(text, span, charseq.text or "")
    return span


def _text_beside(source: Source) -> str:
    beside = source.sibling(".sgm", instead_of=SUFFIX)
    if not Path(beside.path).is_file():
        raise FormatError(f"its text is missing, expected {beside.name}")
    return _TAG.sub("", beside.text())
