"""Documents in the terminal: exact output."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from textwrap import dedent

import pytest
from rich.console import Console

from spandet.errors import MismatchError
from spandet.text import CharSpan, Document, Entity, WordRow
from spandet.viewing import comparison_to_terminal, to_terminal
from spandet.viewing.cells import cut, lines


def entity(text: str, words: str, label: str) -> Entity[CharSpan]:
    """The position of the words in the text; " ... " is a gap."""
    pieces, start = [], 0
    for piece in words.split(" ... "):
        start = text.index(piece, start)
        pieces.append(CharSpan(start, start + len(piece)))
    return Entity.from_fragments(pieces, label)


def document(text: str, *entities: tuple[str, str], id: str | None = None) -> Document:  # noqa: A002
    found = tuple(entity(text, words, label) for words, label in entities)
    return Document(text, found, id)


def plain(lines: Iterable[object]) -> str:
    return "\n".join(str(line) for line in lines)


def shown(*documents: Document, width: int = 60) -> str:
    return plain(to_terminal(documents, width=width, color=False))


def drawing(text: str) -> str:
    """Expected output without its margin, which is a bar because spaces matter."""
    return "\n".join(line.partition("|")[2] for line in dedent(text).strip("\n").splitlines())


def test_nested_entities_have_layers_with_the_outer_one_nearest() -> None:
    text = "The IL-2 receptor gene binds."
    found = document(
        text, ("IL-2", "protein"), ("IL-2 receptor", "protein"), ("IL-2 receptor gene", "DNA")
    )
    assert shown(found) == drawing(
        """
        |The IL-2 receptor gene binds.
        |    └─DNA────────────┘
        |    └─protein───┘
        |    └──┘protein
        |
        """
    )


def test_crossing_entities_and_two_labels_for_one_span() -> None:
    text = "Upper Rhine Council votes"
    found = document(
        text, ("Upper Rhine", "AREA"), ("Rhine Council", "GROUP"), ("Rhine Council", "PARTY")
    )
    assert shown(found) == drawing(
        """
        |Upper Rhine Council votes
        |└─AREA────┘
        |      └─GROUP─────┘
        |      └─PARTY─────┘
        |
        """
    )


def test_a_gap_is_dotted() -> None:
    text = "left and right atrium"
    found = document(text, ("left ... atrium", "PART"), ("right atrium", "PART"))
    assert shown(found) == drawing(
        """
        |left and right atrium
        |└──┘···········└PART┘
        |         └─PART─────┘
        |
        """
    )


def test_a_bar_continues_on_the_next_line_and_repeats_its_label() -> None:
    text = "old mayor of the small town"
    assert shown(document(text, (text, "PER"), ("town", "GPE")), width=12) == drawing(
        """
        |old mayor of
        |└─PER───────
        |the small
        |─PER─────
        |town
        |PER┘
        |└──┘GPE
        |
        """
    )


def test_a_label_that_does_not_fit_is_beside_its_bar_or_shortened() -> None:
    found = document("p53 IL2 is", ("p53", "protein"), ("IL2", "protein"), ("is", "VERB"))
    assert shown(found, width=12) == drawing(
        """
        |p53 IL2 is
        |└─┘protein
        |    VERB└┘
        |    └─┘prot…
        |
        """
    )


def test_bars_count_cells_not_characters() -> None:
    text = "在上海 👩\u200d👧 cafe\u0301 ok"
    found = document(text, ("上海", "GPE"), ("👩\u200d👧", "P"), ("cafe\u0301", "F"), ("ok", "X"))
    assert shown(found) == drawing(
        """
        |在上海 👩\u200d👧 cafe\u0301 ok
        |  └──┘GPE └─F┘ └┘X
        |       └┘P
        |
        """
    )


def test_right_to_left_sentences_list_their_entities() -> None:
    text = "ראש העיר תל אביב"
    found = document(text, ("תל אביב", "GPE"), (text, "PER"))
    assert shown(found) == drawing(
        """
        |ראש העיר תל אביב
        |└ PER  ראש העיר תל אביב
        |  └ GPE  תל אביב
        |
        """
    )


def test_every_sentence_begins_a_line_and_an_id_is_a_heading() -> None:
    rows = [WordRow(["One", "."]), WordRow(["Two", "."])]
    assert shown(Document.from_rows(rows, id="d-1")) == "── d-1\nOne .\nTwo .\n"


def test_control_characters_are_replaced() -> None:
    found = document("a\x1b[31mb\x07", ("b", "\x1b[0m"), id="\x1b]0;title\x07")
    assert "\x1b" not in shown(found)
    assert shown(found).splitlines()[:2] == ["── ␛]0;title␇", "a␛[31mb␇"]


def test_a_comparison_marks_hits_misses_and_false_alarms_without_colour() -> None:
    gold = document("Ann met Bob in Bonn today", ("Ann", "PER"), ("Bonn", "CITY"))
    found = document("Ann met Bob in Bonn today", ("Ann", "PER"), ("Bob in Bonn", "GROUP"))
    assert plain(comparison_to_terminal([(gold, found)], width=60, color=False)) == drawing(
        """
        |Ann met Bob in Bonn today
        |└─┘✓PER └┈+GROUP┈┈┘
        |               └╌╌┘✗CITY
        |
        |✓ 1 hit
        |✗ 1 miss
        |+ 1 false alarm
        """
    )


def test_different_texts_are_an_error_with_the_first_difference() -> None:
    pair = (Document("same here", id="d7"), Document("same there", id="d7"))
    with pytest.raises(
        MismatchError, match=r"document d7: .* differ at character 5: 'here' and 'th"
    ):
        list(comparison_to_terminal([pair], width=40, color=False))


def test_a_label_has_one_colour_or_none_without_colours() -> None:
    first = document("a b", ("a", "X"), ("b", "Y"))
    second = document("b a", ("b", "Y"), ("a", "X"))
    colors: dict[str, set[str]] = {}
    for line in to_terminal([first, second], width=40, color=True):
        for span in line.spans:
            colors.setdefault(line.plain[span.start : span.end][-1], set()).add(str(span.style))
    assert {label: len(styles) for label, styles in colors.items()} == {"X": 1, "Y": 1}
    assert colors["X"] != colors["Y"]
    assert not any(line.spans for line in to_terminal([first, second], width=40, color=False))


def test_a_console_prints_the_lines_as_they_are() -> None:
    found = document("[b] :smile: " + "word " * 30, ("word word", "[red]X"))
    console = Console(file=StringIO(), width=30, force_terminal=False)
    for line in to_terminal([found], width=80, color=False):
        console.print(line, soft_wrap=True)
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == shown(found, width=80) + "\n"


def test_a_terminal_has_two_cells_or_more() -> None:
    with pytest.raises(ValueError, match="at least 2 cells, got 1"):
        list(to_terminal([], width=1, color=False))


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two", 20, ["one two"]),
        ("one two", 5, ["one", "two"]),
        ("one   two", 3, ["one", "two"]),
        ("incomprehensible", 6, ["incomp", "rehens", "ible"]),
        ("北京大学。好", 8, ["北京大", "学。好"]),
        ("北京（大学", 6, ["北京", "（大学"]),
        ("  \n ", 5, []),
    ],
)
def test_lines_break_where_readers_expect(text: str, width: int, expected: list[str]) -> None:
    assert [line.text for line in lines(text, width)] == expected


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("北京", 3, "北…"), ("北京", 1, "…"), ("abc", 0, "")],
)
def test_a_shortened_text_ends_with_an_ellipsis(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected
