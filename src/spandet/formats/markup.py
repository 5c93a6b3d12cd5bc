"""XML read with care: it can fetch nothing, define no entities, and its errors name their line."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from spandet.errors import FormatError
from spandet.formats.records import shown
from spandet.formats.source import Source, too_long
from spandet.text import CharSpan

_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 1 << 24
_MOST_DIGITS = 12


def new_parser() -> expat.XMLParserType:
    """A parser that refuses what XML bombs are made of; external entities are never fetched."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_definition
    # With an outside DTD, which is not fetched, expat would pass over unknown entities in silence.
    parser.SkippedEntityHandler = _refuse_reference
    return parser


def feed(source: Source, parser: expat.XMLParserType) -> Iterator[int]:
    """Run the parser over the source; yields after each chunk, so that results can be taken.

    What it yields is how many bytes it has read: a parser may hold all since the last result.

    Raises:
        FormatError: the XML is damaged, or a handler of the parser says so; names the line.
    """
    done = 0
    with source.binary() as stream:
        try:
            while chunk := stream.read(_CHUNK_BYTES):
                parser.Parse(chunk, False)
                done += len(chunk)
                yield done
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            what = f"not XML ({expat.ErrorString(error.code)})"
            raise FormatError(what, f"{source.name}:{error.lineno}") from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not have
            raise FormatError(f"not XML that can be decoded ({error})", source.name) from None
        except FormatError as error:
            raise error.at(f"{source.name}:{parser.CurrentLineNumber}") from None
        yield done


def read_tree(source: Source, root: str) -> Element:
    """A small XML file as a tree, if its root element is the expected one."""
    parser, builder = new_parser(), TreeBuilder()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    for done in feed(source, parser):
        check_markup(done, source)
    tree = builder.close()
    check_root(tree.tag, root)
    return tree


def check_markup(size: int, source: Source) -> None:
    """Is one document short enough? Tags take much more memory than they are long."""
    if size > _MOST_BYTES:
        raise too_long("document", _MOST_BYTES).at(source.name)


def check_root(found: str, expected: str) -> None:
    """Is this XML of the expected kind?"""
    if found != expected:
        raise FormatError(f"the root element is <{found}>, expected <{expected}>")


def attribute(element: Element, name: str) -> str:
    """An attribute that must be there."""
    value = element.get(name)
    if value is None:
        raise FormatError(f"<{element.tag}> has no {name}")
    return value


def number(element: Element, name: str) -> int:
    """An attribute that must be a whole number."""
    value = attribute(element, name)
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
        raise FormatError(f"{name} of <{element.tag}> is {shown(value)}, expected a whole number")
    return int(value)


def child(element: Element, name: str) -> Element:
    """A part that must be there."""
    found = element.find(name)
    if found is None:
        raise FormatError(f"<{element.tag}> has no <{name}>")
    return found


def check_mention(text: str, span: CharSpan, said: str) -> None:
    """Do the characters of a span read as its annotation says? White space and `&amp;` aside."""
    there = text[span.start : span.end]
    if _plain(there) != _plain(said):
        raise FormatError(
            f"characters {span.start}:{span.end} of the text are {shown(there)}, "
            f"but the annotation says {shown(said)}"
        )


def _plain(text: str) -> list[str]:
    return unescape(text).split()


def _refuse_definition(name: str, *_: object) -> None:
    raise FormatError(f"it defines the entity {shown(name)}, which is not allowed here")


def _refuse_reference(name: str, *_: object) -> None:
    raise FormatError(f"the entity &{name}; is not defined")
