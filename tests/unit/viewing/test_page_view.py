"""The HTML of documents and comparisons, without a browser."""

from __future__ import annotations

import re
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from spandet.errors import MismatchError
from spandet.rendering.html import html_page
from spandet.text import CharSpan, Document, Entity, WordRow
from spandet.viewing import comparison_to_html, to_html
from spandet.viewing.labels import LabelNumbers, label_rules, symbol_rules
from spandet.viewing.layout import blocks
from spandet.viewing.markup import mark_up
from spandet.viewing.outcomes import Outcome, ShownEntity, compare_entities


def marked(text: str, *entities: Entity[CharSpan]) -> str:
    """The text's HTML with only the classes left on its marks."""
    shown = [ShownEntity(entity) for entity in entities]
    found = "".join(
        block.html for block in mark_up(text, [CharSpan(0, len(text))], shown, LabelNumbers())
    )
    return re.sub(r'<mark class="([^"]*)"[^>]*><span>', r"<\1>", found).replace(
        "</span></mark>", "</>"
    )


def span(start: int, end: int, label: str = "A") -> Entity[CharSpan]:
    return Entity(CharSpan(start, end), label)


def test_an_outer_entity_is_an_outer_element() -> None:
    found = marked("aa bb cc dd", span(3, 5, "B"), span(0, 8, "A"))
    assert found == "<k1>aa <k0>bb</> cc</> dd"


def test_a_label_longer_than_its_words_is_marked_as_narrow() -> None:
    assert marked("p53 binds", span(0, 3, "protein")) == "<k0 narrow>p53</> binds"
    assert marked("p53 binds", span(0, 9, "protein")) == "<k0>p53 binds</>"


def test_a_crossing_entity_is_continued_in_a_second_element() -> None:
    found = marked("aaaa bbbb cccc", span(0, 9, "A"), span(5, 14, "B"))
    assert found == "<k0>aaaa <k1 open>bbbb</></><k1 more> cccc</>"


def test_a_gap_is_a_separate_element() -> None:
    apart = Entity.from_fragments([CharSpan(0, 4), CharSpan(9, 13)], "A")
    assert marked("left and atrium", apart) == "<k0>left</><k0 gap> and </><k0>atri</>um"


def test_an_element_between_joined_letters_has_a_class() -> None:
    assert "joined" in marked("بالقاهرة", span(1, 8))
    assert "joined" not in marked("في القاهرة", span(3, 10))
    assert "joined" not in marked("北京大学", span(2, 4))
    assert "joined" not in marked("prefix", span(3, 6))


def test_an_entity_that_leaves_its_sentence_is_shown_in_both() -> None:
    rows = [WordRow(["One", "two"]), WordRow(["three", "four"])]
    text = Document.from_rows(rows)
    across = Document(text.text, (span(4, 13),), own_sentences=text.own_sentences)
    found = to_html([across], title="t")
    assert re.findall(r"<span>([^<]*)</span>", found) == ["two\n", "three"]


def test_the_first_element_of_an_entity_has_the_details() -> None:
    scored = Entity(CharSpan(0, 2), "A", score=0.98765)
    found = to_html([Document("ab", (scored,))], title="t")
    assert 'data-i="0" data-at="0:2" data-score="0.9877"' in found


def test_documents_are_escaped_everywhere() -> None:
    hostile = "</style><script>alert(1)</script>\"'&"
    found = to_html(
        [Document(hostile, (span(0, len(hostile), hostile),), id=hostile)], title=hostile
    )
    assert found.count("<script>") == found.count("</script>") == 1
    assert found.count("</style>") == 1
    assert "&lt;script&gt;alert(1)" in found
    assert "alert(1)" not in found.replace("&gt;alert(1)&lt;", "").replace("%3Ealert%281%29", "")


def test_blocks_are_the_whole_text_in_order() -> None:
    text = Document.from_rows([WordRow(["a", "b"]), WordRow([]), WordRow(["c"])])
    assert [text.text[block.start : block.end] for block in blocks(text)] == ["a b\n\n", "c"]
    assert blocks(Document("")) == []
    assert blocks(Document(" \n ")) == [CharSpan(0, 3)]


@pytest.mark.parametrize("label", ["DNA", "a<b>&\"'", "数量", "\x00\x1b\ufffe\ud800", "</style>"])
def test_every_image_is_valid_and_contains_the_label(label: str) -> None:
    rules = label_rules(3, label)
    pictures = re.findall(r'url\("data:image/svg\+xml,([^"]*)"\)', rules)
    assert len(pictures) == 4  # light and dark, left-to-right and right-to-left
    for picture in pictures:
        image = ET.fromstring(unquote(picture))  # noqa: S314 (our own)
        assert "".join(image.itertext()) == label.translate(
            {0: "␀", 0x1B: "␛", 0xFFFE: "\ufffd", 0xD800: "\ufffd"}
        )
    assert "</" not in rules


def test_symbols_are_valid_images() -> None:
    pictures = re.findall(r'url\("data:image/svg\+xml,([^"]*)"\)', symbol_rules())
    assert len({unquote(picture) for picture in pictures}) == 6
    for picture in pictures:
        ET.fromstring(unquote(picture))  # noqa: S314 (our own)


def test_a_page_has_counts() -> None:
    documents = [
        Document.from_rows([WordRow(["a"]), WordRow(["b"])]),
        Document("cd", (span(0, 1, "X"), span(1, 2, "X"), span(0, 2, "Y"))),
    ]
    found = to_html(documents, title="t")
    assert "2 documents · 3 sentences · 3 entities" in found
    assert "<bdi>X</bdi> <small>2</small>" in found
    assert "<bdi>Y</bdi> <small>1</small>" in found


def test_a_page_without_documents_is_valid() -> None:
    assert "0 documents · 0 sentences · 0 entities" in to_html([], title="t")
    assert "only the 0 of 0 documents with errors" in comparison_to_html([], title="t")


def test_a_comparison_shows_both_sides_and_counts() -> None:
    gold = Document("ab cd", (span(0, 2, "X"), span(3, 5, "Y")), id="d")
    wrong = Document("ab cd", (span(0, 2, "X"), span(3, 5, "Z"), span(3, 5, "Z")))
    right = Document("ab cd", gold.entities)
    found = comparison_to_html([(gold, wrong), (gold, right)], title="t")
    assert re.findall(r'<span class="outcome (\w+)">([^<]*)<', found) == [
        ("hit", "3 hits"),
        ("miss", "1 miss"),
        ("alarm", "1 false alarm"),
    ]
    assert re.findall(r'<article class="(\w+)" data-number="(\d)"', found) == [
        ("flawed", "1"),
        ("flawless", "2"),
    ]
    assert "<bdi>Y</bdi> <small>✓1 ✗1 +0</small>" in found
    assert "<bdi>Z</bdi> <small>✓0 ✗0 +1</small>" in found
    assert "only the 1 of 2 documents with errors" in found


def test_two_texts_in_a_comparison_are_a_mismatch() -> None:
    pair = (Document("ab"), Document("abc"))
    with pytest.raises(MismatchError, match=r"without an id.*differ at character 2: '' and 'c'"):
        comparison_to_html([pair], title="t")


def test_outcomes_depend_on_fragments_and_labels_but_not_on_scores() -> None:
    fragments, text = [CharSpan(0, 4), CharSpan(9, 15)], "left and atrium"
    gold = Document(text, (Entity.from_fragments(fragments, "P"),))
    whole = Document(text, (span(0, 15, "P"),))
    scored = Document(text, (Entity.from_fragments(fragments, "P", 0.5),))
    assert [shown.outcome for shown in compare_entities(gold, whole).union] == [
        Outcome.MISS,
        Outcome.FALSE_ALARM,
    ]
    assert [shown.outcome for shown in compare_entities(gold, scored).union] == [Outcome.HIT]


def test_a_page_forbids_every_request() -> None:
    found = html_page(title="a\ud800<b>", body="<p>x</p>", style=".x{}", script="let y;")
    assert "default-src 'none'" in found
    assert "<title>a?&lt;b&gt;</title>" in found
    assert found.encode()
    assert "<script>let y;</script>" in found
    assert "<script>" not in html_page(title="t", body="")
