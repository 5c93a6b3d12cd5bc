"""ERE (DEFT Rich ERE, TAC KBP): mentions in `NAME.rich_ere.xml`, the text in a source file.

    <deft_ere doc_id="a1"><entities><entity id="e1" type="PER">
    <entity_mention id="m1" noun_type="NOM" source="a1" offset="3" length="9">
    <mention_text>our mayor</mention_text>
    <nom_head source="a1" offset="7" length="5">mayor</nom_head>
    </entity_mention></entity></entities></deft_ere>

A mention is an offset and a length, counted in characters of the raw source file including its
tags. The document's text is that file, unchanged. The source is the file NAME with .txt, .xml,
.mpdf.xml or .cmp.txt in the same folder, or in the folder "source" next to that folder. The text
of `<mention_text>` must be equal to the text at the offset. The label is the entity's type;
fillers, relations and events are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from spandet.errors import FormatError
from spandet.formats.markup import attribute, check_mention, child, number, read_tree
from spandet.formats.records import checked_span
from spandet.formats.source import Parsed, Source
from spandet.text import CharSpan, Document, Entity

SUFFIXES = (".rich_ere.xml", ".ere.xml")
TEXT_SUFFIXES = (".txt", ".xml", ".mpdf.xml", ".cmp.txt")


def read(source: Source, *, heads: bool = False) -> Iterator[Parsed]:
    """Read the document of an ERE file.

    Args:
        source: The annotation.
        heads: Read the head ("mayor") of a mention that has one instead of all of it ("our mayor").
    """
    try:
        yield _document(source, heads=heads)
    except FormatError as error:
        yield error.at(source.name)


def _document(source: Source, *, heads: bool) -> Document:
    tree = read_tree(source, "deft_ere")
    annotation = Path(source.path.removesuffix(".gz"))
    ending = next((end for end in SUFFIXES if annotation.name.endswith(end)), annotation.suffix)
    stem = annotation.name.removesuffix(ending)
    text = _source_text(annotation, stem)
    entities = []
    for entity in tree.iter("entity"):
        label = attribute(entity, "type")
        for mention in entity.iter("entity_mention"):
            try:
                entities.append(Entity(_mention_span(mention, text, heads=heads), label))
            except FormatError as error:
                raise error.inside(f"entity_mention {mention.get('id')}") from None
    # The file lists mentions by entity; documents list them in the order of the text.
    entities.sort(key=lambda entity: (entity.span.start, -entity.span.end))
    return Document(text, tuple(entities), tree.get("doc_id", stem))


def _mention_span(mention: Element, text: str, *, heads: bool) -> CharSpan:
    head = mention.find("nom_head")
    if heads and head is not None:
        return _span(head, text, head.text or "")
    return _span(mention, text, child(mention, "mention_text").text or "")


def _span(element: Element, text: str, expected: str) -> CharSpan:
    offset, length = number(element, "offset"), number(element, "length")
    if length == 0:
        raise FormatError(f"length of <{element.tag}> is 0, expected 1 or more")
    span = checked_span(CharSpan, offset, offset + length, len(text))
    check_mention(text, span, expected)
    return span


def _source_text(annotation: Path, stem: str) -> str:
    folders = (annotation.parent, annotation.parent.parent / "source")
    for path in (folder / (stem + suffix) for folder in folders for suffix in TEXT_SUFFIXES):
        for found in (path, path.with_name(path.name + ".gz")):
            if found.is_file() and path != annotation:
                return Source(str(found)).text()
    raise FormatError(
        f"its source is missing, expected {folders[0] / stem} with "
        f"{', '.join(TEXT_SUFFIXES)}, or the same in {folders[1]}"
    )
