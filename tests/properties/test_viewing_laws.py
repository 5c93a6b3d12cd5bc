"""Laws of viewing, for any text: complete text, no overlapping bars, no line too wide."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from spandet.text import CharSpan, Document, Entity
from spandet.viewing import comparison_to_html, comparison_to_terminal, to_html, to_terminal
from spandet.viewing.cells import lines, printable
from spandet.viewing.layout import layers
from support.strategies import raw_documents, worded_documents

# Difficult characters: wide, combining, joined, right-to-left, control, and lone surrogates.
HARD = (
    "aB .,中文，（）e\u0301\u0300👩\u200d👧☎\ufe0f1🇩🇪👍🏽\u1100\u1161ابתש"
    "\u202e\u200b\t\r\n\x1b\x00\u3000\ud83d<&>\"'"
)
HARD_TEXT = st.text(st.sampled_from(HARD) | st.characters(), max_size=60)
EXTENTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair))),
    max_size=14,
)
WIDTHS = st.integers(2, 40)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@given(EXTENTS)
def test_overlapping_bars_never_share_a_layer(extents: list[tuple[int, int]]) -> None:
    found = layers(extents)
    for i, j in combinations(range(len(extents)), 2):
        assert not (overlap(extents[i], extents[j]) and found[i] == found[j])


@given(EXTENTS)
def test_there_are_as_many_layers_as_bars_overlap_at_most(extents: list[tuple[int, int]]) -> None:
    deepest = max((sum(a <= at < b for a, b in extents) for at in range(50)), default=0)
    assert max(layers(extents), default=-1) + 1 == deepest


@given(EXTENTS)
def test_without_crossings_an_outer_bar_is_nearer(extents: list[tuple[int, int]]) -> None:
    nested: list[tuple[int, int]] = []
    for extent in extents:
        if not any(_cross(extent, other) for other in nested):
            nested.append(extent)
    nested.sort(key=lambda extent: extent[0] - extent[1])
    found = layers(nested)
    for i, j in combinations(range(len(nested)), 2):
        if nested[i][0] <= nested[j][0] and nested[j][1] <= nested[i][1]:
            assert found[i] < found[j]


def _cross(one: tuple[int, int], other: tuple[int, int]) -> bool:
    inside = one[0] <= other[0] and other[1] <= one[1]
    around = other[0] <= one[0] and one[1] <= other[1]
    return overlap(one, other) and not inside and not around


@given(HARD_TEXT, WIDTHS)
def test_lines_contain_everything_except_spaces_and_fit(text: str, width: int) -> None:
    shown = printable(text)
    found = list(lines(shown, width))
    assert len(shown) == len(text)
    assert "".join("".join(line.text for line in found).split()) == "".join(shown.split())
    for line in found:
        assert cell_len(line.text) <= width
        assert shown[line.start : line.end] == line.text
        assert len(line.left) == len(line.right) == len(line.text)
        assert line.right[-1] == cell_len(line.text)


LONE_ACCENT = Document(  # a part that is only a character without width, at the end of a line
    "0000\U000e01f0", (Entity.from_fragments([CharSpan(0, 1), CharSpan(4, 5)], "protein"),)
)


@given(
    st.lists(raw_documents(text=HARD_TEXT) | worded_documents(), max_size=3), WIDTHS, st.booleans()
)
@example([LONE_ACCENT], 2, False)
def test_terminal_lines_are_in_order_and_never_too_wide(
    documents: list[Document], width: int, color: bool
) -> None:
    shown = list(to_terminal(documents, width=width, color=color))
    for line in shown:
        assert cell_len(line.plain) <= width
        line.plain.encode()
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line.plain)
        assert color or not line.spans
    output = iter("".join("".join(line.plain for line in shown).split()))
    wanted = "".join(printable("".join(document.text for document in documents)).split())
    assert all(
        character in output for character in wanted
    )  # a subsequence: `in` advances the iterator


@given(raw_documents(text=HARD_TEXT), st.integers(30, 60))
def test_terminal_output_has_the_label_of_every_entity(document: Document, width: int) -> None:
    output = "\n".join(line.plain for line in to_terminal([document], width=width, color=False))
    for entity in document.entities:
        if printable(document.text[entity.span.start : entity.span.end]).strip():
            assert printable(entity.label) in output


class Reader(HTMLParser):
    """Parses a page: the texts of each side, and the <mark> elements."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[dict[str, str]] = []
        self.marks: list[dict[str, str]] = []
        self.covered: dict[tuple[int, str, str], str] = {}
        self.tags: list[str] = []
        self._side: str | None = None
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = {name: value or "" for name, value in attrs}
        if tag == "article":
            self.texts.append({})
        elif tag == "p" and "data-side" in values:
            self._side = values["data-side"]
            self.texts[-1].setdefault(self._side, "")
        elif tag == "mark":
            self.marks.append(values)
            self._open.append("" if "gap" in values["class"].split() else values["data-i"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._side = None
        elif tag == "mark":
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._side is not None:
            self.texts[-1][self._side] += data
            for number in self._open:
                key = (len(self.texts) - 1, self._side, number)
                self.covered[key] = self.covered.get(key, "") + data


def writable(text: str) -> str:
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


@given(st.lists(raw_documents(text=HARD_TEXT) | worded_documents(), max_size=3))
def test_a_page_without_its_tags_is_the_text(documents: list[Document]) -> None:
    page = to_html(documents, title="t")
    page.encode()
    read = Reader(page)
    assert [texts.get("all", "") for texts in read.texts] == [writable(d.text) for d in documents]


@given(raw_documents(text=HARD_TEXT))
def test_a_page_marks_exactly_the_characters_of_every_entity(document: Document) -> None:
    read = Reader(to_html([document], title="t"))
    for number, entity in enumerate(document.entities):
        pieces = [document.text[piece.start : piece.end] for piece in entity.spans]
        assert read.covered[0, "all", str(number)] == writable("".join(pieces))
    described = [mark["data-at"] for mark in read.marks if "data-at" in mark]
    offsets = [
        ",".join(f"{piece.start}:{piece.end}" for piece in entity.spans)
        for entity in document.entities
    ]
    assert sorted(described) == sorted(offsets)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Document, Document]:
    """Gold, and a prediction that keeps some of it and adds something."""
    gold = draw(raw_documents(text=HARD_TEXT))
    kept = tuple(entity for entity in gold.entities if draw(st.booleans()))
    other = draw(raw_documents(text=st.just(gold.text)))
    return gold, Document(gold.text, (*kept, *other.entities))


def _distinct(document: Document) -> set[tuple[tuple[CharSpan, ...], str]]:
    return {(entity.spans, entity.label) for entity in document.entities}


@given(st.lists(pairs(), max_size=2), WIDTHS.map(lambda width: width + 20))
def test_a_comparison_counts_like_sets(
    compared: list[tuple[Document, Document]], width: int
) -> None:
    hits = sum(len(_distinct(gold) & _distinct(found)) for gold, found in compared)
    misses = sum(len(_distinct(gold) - _distinct(found)) for gold, found in compared)
    alarms = sum(len(_distinct(found) - _distinct(gold)) for gold, found in compared)
    shown = list(comparison_to_terminal(compared, width=width, color=False))
    numbers = [int(line.plain.split()[1]) for line in shown[-3:]]
    assert numbers == [hits, misses, alarms]
    assert [line.plain[0] for line in shown[-3:]] == ["✓", "✗", "+"]
    assert all(cell_len(line.plain) <= width for line in shown)


@given(st.lists(pairs(), max_size=2))
def test_both_sides_of_a_comparison_are_the_text(compared: list[tuple[Document, Document]]) -> None:
    read = Reader(comparison_to_html(compared, title="t"))
    for texts, (gold, _) in zip(read.texts, compared, strict=True):
        assert set(texts.values()) <= {writable(gold.text)}
        assert set(texts) == ({"gold", "predicted"} if gold.text else set())
    for mark in read.marks:
        assert len({"hit", "miss", "alarm"} & set(mark["class"].split())) == 1


@given(st.text(st.sampled_from("<>&\"'/scriptx =") | st.characters(), min_size=1, max_size=30))
def test_no_label_id_or_text_becomes_a_tag(hostile: str) -> None:
    def page(text: str) -> str:
        entity = Entity(CharSpan(0, len(text)), text)
        return to_html([Document(text, (entity,), id=text)], title=text)

    allowed = Reader(page("x" * len(hostile))).tags
    assert set(Reader(page(hostile)).tags) == set(allowed)
