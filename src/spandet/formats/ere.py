"""ERE, as in DEFT Rich ERE and TAC KBP: mentions in `NAME.rich_ere.xml`, the text in its source.

    <deft_ere doc_id="a1"><entities><entity id="e1" type="PER">
    <entity_mention id="m1" noun_type="NOM" source="a1" offset="3" length="9">
    <mention_text>our mayor</mention_text>
    <nom_head source="a1" offset="7" length="5">mayor</nom_head>
    </entity_mention></entity></entities></deft_ere>

There is no end: a mention is an offset and a length, counted in characters of the raw source file
with all of its tags. The document's text is that file as it stands. The source is the file NAME
with .txt, .xml, .mpdf.xml or .cmp.txt in the same folder or in a folder "source" beside it. What
`<mention_text>` says must stand at the offset. The label is the entity's type; fillers, relations
and events are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from spandet.errors import FormatError
from spandet.formats.markup import attribute, check_mention, child, number, read_tree
from spandet.formats.records import a_span
from spandet.formats.source import Parsed, Source
from spandet.text import CharSpan, Document, Entity

SUFFIXES = (".rich_ere.xml", ".ere.xml")
TEXT_SUFFIXES = (".txt", ".xml", ".mpdf.xml", ".cmp.txt")


def read(source: Source, *, heads: bool = False) -> Iterator[Parsed]:
    """The document of an ERE file.

    Args:
        source: The annotation; its text is looked for beside it.
        heads: Take the head ("mayor") of a mention that has one instead of all of it ("our mayor").
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
    # The file lists them by what they refer to; readers expect the order of the text.
    entities.sort(key=lambda entity: (entity.span.start, -entity.span.end))
    return Document(text, tuple(entities), tree.get("doc_id", stem))


def _mention_span(mention: Element, text: str, *, heads: bool) -> CharSpan:
    head = mention.find("nom_head")
    if heads and head is not None:
        return _span(head, text, head.text or "")
    return _span(mention, text, child(mention, "mention_text").text or "")


def _span(element: Element, text: str, said: str) -> CharSpan:
    offset, length = number(element, "offset"), number(element, "length")
    if length == 0:
        raise FormatError(f"length of <{element.tag}> is 0, expected 1 or more")
    span = a_span(CharSpan, offset, offset + length, len(text))
    check_mention(text, span, said)
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
