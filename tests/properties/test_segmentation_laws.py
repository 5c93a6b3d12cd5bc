from __future__ import annotations

import textwrap

from hypothesis import given, settings
from hypothesis import strategies as st

from spandet.text.segmentation import segment
from spandet.text.words import split_words

PARTS = [
    *(
        "The",
        "cells",
        "IL-2",
        "NF-kappa",
        "B",
        "p53",
        "Ca(2+)",
        "Dr",
        "e.g",
        "U.S.",
        "al",
        "3",
        "5.5",
    ),
    *(
        "細",
        "胞",
        "กำ",
        "é",
        "e\u0301",
        "👩‍👩‍👧",
        "🇩🇪",
        "https://a.b/c",
        "x@y.org",
        "-mediated",
        "anti-",
    ),
    *(
        ".",
        "?",
        "!",
        "…",
        "...",
        "。",
        "！",
        ",",
        ":",
        "(",
        ")",
        "[",
        "]",
        '"',
        "“",
        "”",
        "»",
        "'s",
        "/",
    ),
    *(
        " ",
        "\n",
        "\r\n",
        "\n\n",
        "\t",
        "\u2029",
        "\x1c",
        "\x85",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\0",
        "\ud800",
    ),
]
ANY_CHARACTER = st.characters(exclude_categories=())  # lone surrogates, too
TEXTS = st.one_of(
    st.text(ANY_CHARACTER, max_size=80),
    st.lists(st.sampled_from(PARTS), max_size=60).map("".join),
    st.lists(st.sampled_from(PARTS), max_size=40).map(" ".join),
)


@settings(max_examples=300)
@given(TEXTS)
def test_every_character_except_white_space_is_in_exactly_one_word(text: str) -> None:
    spans = split_words(text)
    assert all(start < end for start, end in spans)
    covered = [i for start, end in spans for i in range(start, end)]
    assert covered == [i for i, character in enumerate(text) if not character.isspace()]


@settings(max_examples=300)
@given(TEXTS)
def test_every_word_is_in_exactly_one_sentence_in_order(text: str) -> None:
    sentences = segment(text)
    assert all(sentence.words for sentence in sentences)
    placed = [
        (start, start + len(word))
        for sentence in sentences
        for word, start in zip(sentence.words, sentence.starts, strict=True)
    ]
    assert placed == split_words(text)
    words = [word for sentence in sentences for word in sentence.words]
    assert words == [text[start:end] for start, end in placed]


@settings(max_examples=300)
@given(TEXTS, TEXTS, st.sampled_from(["\n\n", "\r\n\r\n", "\n \t\n", "\u2029"]))
def test_texts_separated_by_a_blank_line_are_segmented_independently(
    one: str, other: str, blank: str
) -> None:
    shift = len(one) + len(blank)
    apart = [(sentence.words, sentence.starts) for sentence in segment(one)]
    apart += [
        (sentence.words, tuple(start + shift for start in sentence.starts))
        for sentence in segment(other)
    ]
    together = [(sentence.words, sentence.starts) for sentence in segment(one + blank + other)]
    assert together == apart


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([part for part in PARTS if part.strip() == part]), max_size=60),
    st.integers(min_value=20, max_value=90),
)
def test_wrapping_a_paragraph_does_not_change_its_sentences(parts: list[str], width: int) -> None:
    text = " ".join(parts)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    wrapped = [sentence.words for sentence in segment("\n".join(lines))]
    assert wrapped == [sentence.words for sentence in segment(text)]
