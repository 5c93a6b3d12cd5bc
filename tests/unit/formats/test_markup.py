"""Safe reading of XML: no entities, no external files."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from spandet.errors import FormatError
from spandet.formats.markup import check_mention, number, read_tree
from spandet.formats.source import Source
from spandet.text import CharSpan

BOMB = """<!DOCTYPE r [
<!ENTITY a "ha ha ha ha ha ha ha ha">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
]><r>&b;</r>"""


def tree(folder: Path, content: str | bytes) -> Element:
    path = folder / "file.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_tree(Source(str(path)), "r")


def test_a_tree_has_attributes_texts_and_the_encoding_it_declares(tmp_path: Path) -> None:
    data = '<?xml version="1.0" encoding="iso-8859-1"?><r k="v">é<s/>t</r>'.encode("latin-1")
    root = tree(tmp_path, data)
    assert (root.get("k"), root.text, root[0].tail) == ("v", "é", "t")


def test_entities_of_its_own_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r'file\.xml:2: it defines the XML entity "a"'):
        tree(tmp_path, BOMB)


def test_other_files_are_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(FormatError, match=r'it defines the XML entity "x"'):
        tree(tmp_path, '<!DOCTYPE r [<!ENTITY x SYSTEM "secret">]><r>&x;</r>')
    (tmp_path / "r.dtd").write_text('<!ENTITY x "secret">')
    with pytest.raises(FormatError, match=r"the XML entity &x; is not defined"):
        tree(tmp_path, '<!DOCTYPE r SYSTEM "r.dtd"><r>&x;</r>')


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"file\.xml:1: not XML \(no element found\)"),
        (b"<r>\n<s></r>", r"file\.xml:2: not XML \(mismatched tag\)"),
        (b'<?xml version="1.0" encoding="klingon"?><r/>', r"file\.xml.*(unknown encoding|decoded)"),
        (b"<r>\xff</r>", r"file\.xml:1: not XML \(not well-formed"),
        (b"<q/>", r"the root element is <q>, expected <r>"),
    ],
)
def test_damage_is_a_format_error(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        tree(tmp_path, data)


@pytest.mark.parametrize("value", ["", "-1", "+1", "1_0", "٣", "1.0", " 1", "9" * 5000])
def test_numbers_are_plain_digits(value: str) -> None:
    with pytest.raises(FormatError, match=r"START of <charseq> is .*, expected a whole number"):
        number(Element("charseq", START=value), "START")


def test_the_text_of_a_mention_is_compared_up_to_spaces_and_escapes() -> None:
    text = "A &amp; B\n Co. and others"
    check_mention(text, CharSpan(0, 14), "A & B Co.")
    check_mention(text, CharSpan(0, 14), "A &amp; B\nCo.")
    with pytest.raises(FormatError) as caught:
        check_mention(text, CharSpan(0, 7), "A +")
    assert str(caught.value) == (
        'characters 0:7 of the text are "A &amp;", but the annotation has "A +"'
    )
