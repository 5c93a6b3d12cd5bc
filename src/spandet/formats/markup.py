"""Safe XML parsing: nothing is fetched, no entities can be defined, errors name the line."""

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
    """Create a parser that refuses entity definitions; external entities are never fetched."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_definition
    # With an external DTD, which is not fetched, expat would silently skip unknown entities.
    parser.SkippedEntityHandler = _refuse_reference
    return parser


def feed(source: Source, parser: expat.XMLParserType) -> Iterator[int]:
    """Run the parser over the source; yields the number of bytes read after each chunk.

    So the caller can take results, and limit the bytes that the parser holds since the last result.

    Raises:
        FormatError: the XML is invalid, or a handler raised this error; names the line.
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
    """Read a small XML file as a tree and check the name of its root element."""
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
    """Refuse a document that is too long; tags take much more memory than their length."""
    if size > _MOST_BYTES:
        raise too_long("document", _MOST_BYTES).at(source.name)


def check_root(found: str, expected: str) -> None:
    """Refuse XML with another root element than expected."""
    if found != expected:
        raise FormatError(f"the root element is <{found}>, expected <{expected}>")


def attribute(element: Element, name: str) -> str:
    """The value of a required attribute."""
    value = element.get(name)
    if value is None:
        raise FormatError(f"<{element.tag}> has no {name}")
    return value


def number(element: Element, name: str) -> int:
    """The value of a required attribute that is a whole number."""
    value = attribute(element, name)
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
        raise FormatError(f"{name} of <{element.tag}> is {shown(value)}, expected a whole number")
    return int(value)


def child(element: Element, name: str) -> Element:
    """A required child element."""
    found = element.find(name)
    if found is None:
        raise FormatError(f"<{element.tag}> has no <{name}>")
    return found


def check_mention(text: str, span: CharSpan, expected: str) -> None:
    """Refuse a span whose text differs from `expected`; white space and escapes may differ."""
    found = text[span.start : span.end]
    if _plain(found) != _plain(expected):
        raise FormatError(
            f"characters {span.start}:{span.end} of the text are {shown(found)}, "
            f"but the annotation has {shown(expected)}"
        )


def _plain(text: str) -> list[str]:
    return unescape(text).split()


def _refuse_definition(name: str, *_: object) -> None:
    raise FormatError(f"it defines the XML entity {shown(name)}, which is not allowed")


def _refuse_reference(name: str, *_: object) -> None:
    raise FormatError(f"the XML entity &{name}; is not defined")
