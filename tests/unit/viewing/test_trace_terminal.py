"""Traces in the terminal: notation, marks and line breaks."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from spandet.text import Document, Entity, WordRow, WordSpan
from spandet.viewing import trace_to_terminal
from spandet.viewing.trace_notation import bracketed, trajectory, triple
from spandet.viewing.traces import Step, TracedDocument
from support.trace_samples import FOUND, IN_FRAGMENTS, PLAIN, WITH_GOLD, WORDS, found, sentence


def shown(
    *documents: TracedDocument,
    width: int | None = None,
    color: bool = False,
    all_stages: bool = False,
) -> str:
    lines = trace_to_terminal(documents, width=width, color=color, all_stages=all_stages)
    return "\n".join(line.plain for line in lines)


def test_the_form_of_the_papers() -> None:
    assert shown(PLAIN) == (
        "Growth of [²liver cells]³CEL needs the [Ca] [⁷FGF-2 gene]⁸DNA .\n"
        "  (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01)\n"
        "  (7, 8, DNA) ← (7.00, 8.00) ← (7.50, 8.00)\n"
    )


def test_with_gold_brackets_show_gold_and_predictions_are_marked() -> None:
    assert shown(WITH_GOLD) == (
        "── d1\n"
        "Growth of [²liver [³cells]³CEL]³CEL needs the [Ca] [⁷FGF-2]⁷DNA gene .\n"
        "  ✓ (2, 3, CEL) ← (2.46, 3.06) ← (2.87, 3.01)\n"
        "  ✗ (7, 8, DNA) ← (7.00, 8.00) ← (7.50, 8.00)  nothing like it in gold\n"
        "  ○ (3, 3, CEL) missed: no candidate overlaps it\n"
        "  ○ (7, 7, DNA) missed: “no entity” was more probable (0.90 against 0.05)\n"
        "    nearest (7, 7, no entity) ← (7.00, 7.00) ← (6.90, 7.00)\n"
        "\n"
        "  ○ Gro (PRO) missed: it does not begin and end at word boundaries of one sentence\n"
        "✓ 1 correct   ✗ 1 wrong   ○ 3 missed"
    )


def test_a_discontinuous_entity_has_a_line_per_fragment() -> None:
    assert shown(IN_FRAGMENTS) == (
        "[⁰Growth]⁰CEL of [²liver cells]³CEL needs [⁵the]⁵DNA [Ca] [⁷FGF-2]⁷DNA gene .\n"
        "  ✓ (0, 0 … 2, 3, CEL)\n"
        "    fragment (0, 0, CEL) ← (0.20, 0.10)\n"
        "    fragment (2, 3, CEL) ← (2.50, 3.00)\n"
        "  ○ (5, 5 … 7, 7, DNA) missed: its fragments were not linked (0.30)\n"
        "    nearest (7, 7, DNA) ← (6.90, 7.00)\n"
        "\n"
        "✓ 1 correct   ✗ 0 wrong   ○ 1 missed"
    )


def test_a_sentence_without_entities_has_a_note() -> None:
    assert shown(sentence(["Nothing", "here"])) == "Nothing here\n  nothing found\n"
    assert shown(sentence([])) == ""


def steps(count: int) -> list[Step]:
    return [Step(f"{i}", float(i), i + 2.0) for i in range(count)]


def test_of_many_stages_the_last_and_the_first_are_shown() -> None:
    assert trajectory(steps(0)) == ""
    assert trajectory(steps(4)) == (" ← (3.00, 4.00) ← (2.00, 3.00) ← (1.00, 2.00) ← (0.00, 1.00)")
    assert trajectory(steps(7)) == " ← (6.00, 7.00) ← … 5 more … ← (0.00, 1.00)"
    assert trajectory(steps(7), all_stages=True).count("←") == 7
    many = sentence(WORDS, [found(2, 4, "CEL", *[(2.0, 4.0)] * 6)])
    assert "← … 4 more … ←" in shown(many)
    assert shown(many, all_stages=True).count("← (2.00, 3.00)") == 6


def test_no_number_is_printed_as_minus_zero() -> None:
    assert trajectory([Step("moved", -0.001, 0.999)]) == " ← (0.00, 0.00)"


def text_of(words: list[str], *entities: Entity[WordSpan]) -> str:
    document = Document.from_rows([WordRow(words)])
    pieces = bracketed(document.sentences[0], document.text, entities)
    return "".join(piece.text for piece in pieces)


def test_brackets_nest_cross_and_share_words() -> None:
    outer, inner = Entity(WordSpan(0, 3), "A"), Entity(WordSpan(1, 3), "B")
    assert text_of(["a", "b", "c"], inner, outer) == "[⁰a [¹b c]²B]²A"
    crossing = Entity(WordSpan(0, 2), "C")
    assert text_of(["a", "b", "c"], crossing, inner) == "[⁰a [¹b]¹C c]²B"
    same = Entity(WordSpan(0, 1), "D"), Entity(WordSpan(0, 1), "E")
    assert text_of(["a"], *same) == "[⁰[⁰a]⁰E]⁰D"
    assert text_of(["x"] * 13, Entity(WordSpan(10, 13), "F")).endswith("[¹⁰x x x]¹²F")


def test_spaces_between_words_are_those_of_the_text() -> None:
    document = Document("(IL-2)\n is", id="d")
    pieces = bracketed(document.sentences[0], document.text, [Entity(WordSpan(1, 2), "P")])
    assert "".join(piece.text for piece in pieces) == "([¹IL-2]¹P) is"


def test_control_characters_of_a_trace_are_replaced() -> None:
    hostile = sentence(["a\x1b[2J", "b"], [found(0, 1, "\x1b[31mX", (0.0, 1.0))])
    assert "\x1b" not in shown(hostile)
    assert triple([WordSpan(0, 1)], "\x1b") == "(0, 0, ␛)"


@pytest.mark.parametrize("width", [20, 33, 80])
def test_lines_are_wrapped_and_lose_nothing(width: int) -> None:
    whole, wrapped = shown(WITH_GOLD), shown(WITH_GOLD, width=width)
    assert all(cell_len(line) <= width for line in wrapped.splitlines())
    assert wrapped.split() == whole.split() or width == 20  # where a word had to be cut
    assert "".join(wrapped.split()) == "".join(whole.split())


def test_colours_are_used_only_where_they_are_wanted() -> None:
    (plain, *_) = trace_to_terminal([PLAIN], width=None, color=False)
    assert all(not span.style for span in plain.spans)
    (painted, *_) = trace_to_terminal([PLAIN], width=None, color=True)
    styles = {str(span.style) for span in painted.spans if span.style}
    assert len(styles) == len(FOUND)  # one per label
