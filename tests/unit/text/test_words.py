from __future__ import annotations

import sys
import time

import pytest

from spandet.text.words import split_words

# "|" stands between words where there is no space.
SPLITS = {
    "plain": ["The cells grew", "a_name", "naïve Ærøskøbing", "Привет мир", "서울은 도시"],
    "joined": ["c-fos p53 IL-2 NF-kappa B", "PU.1 v1.2.3 R&D", "O'Neill rock'n'roll don't"],
    "numbers": ["1,000.5 3.5% 12:30 2020-05-17", "3,4-dihydroxyphenyl", "5'-GGTT", "１２"],
    "brackets inside": ["Ca(2+) 5-HT(1A) 1,25(OH)2D3 CD4+ CD4(+)", "Ca(2+)-ATPase"],
    "brackets outside": ["(|IL-2|)", "factor|(|s|)", "p27|(|Kip1|)", "[|3H|]|thymidine", "f|(|(|x"],
    "adjectives": ["CD28|-mediated Ca(2+)|-dependent", "(|IL-2|)|-induced", "TGF-beta|-driven"],
    "other hyphens": ["T-cell E-selectin TNF-alpha", "IL-2|- and IL-4|-induced", "Na|–|K", "-|85"],
    "prefixes": ["anti-|CD28 non-|B ex-|Yugoslavia", "anti-inflammatory Non-|European"],
    "slashes": ["NF-kappa B|/|CD28|-responsive", "and|/|or 5|/|6"],
    "short forms": ["John|'s they|’ll I|'m", "l'|Europe qu’|elle", "'|tis", "the 1990s|'"],
    "abbreviations": [
        "the U.S. Army",
        "e.g. this|, i.e. that",
        "J|. R|. Tolkien",
        "Dr|. X",
        "p.m.",
    ],
    "forgotten spaces": ["It ended|.|Then", "of IL-2|.|The", "end|,|then", "what|?|Yes"],
    "addresses": [
        "see https://example.org/a_(b)?c=d#e|.",
        "(|www.example.org/x|)",
        "jo.doe+x@mail.example.org|, ok",
        "读|https://example.org/|路|径|。",
        "https://example.org/straße|!",
        "a|@|b @|me",
    ],
    "runs": ["well|... so", "no|!!! what|?!", "a|---|b", "=====", "(|(|(", "”|”", "……|。"],
    "emoji": ["ok|👩‍👩‍👧|👍🏽|🇩🇪|🇫🇷 ❤️|🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣"],
    "Chinese and Japanese": ["T|细|胞|2020|年|。", "サ|ー|バ|ー|は|G7"],
    "South-East Asia": ["กำ|ลั|ง", "ສ|ະ|ບ|າ|ຍ", "ខ្|មែ|រ", "မြ|န်|မာ"],
    "marks": ["e\u0301te\u0301 x\u0301-y\u0301", "हिन्दी में", "שָׁלוֹם", "\u0301( -\u0301|a"],
    "zero width": ["a\u200bb \u200bc d\u200b", "\ufeffBegin", "co\u00adop", "\u200d"],
    "controls": ["a|\0|b", "\ud800 \udc00|x|\ud800"],
}
"""Texts in which "|" marks word boundaries without a space."""


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


def _show(text: str) -> str:
    """The text with a "|" wherever two words touch."""
    shown, last = "", 0
    for start, end in split_words(text):
        shown += text[last:start] + ("|" if start == last and start else "") + text[start:end]
        last = end
    return shown + text[last:]


@pytest.mark.parametrize(
    "wanted", [pytest.param(text, id=kind) for kind, texts in SPLITS.items() for text in texts]
)
def test_words_are_split_as_shown(wanted: str) -> None:
    assert _show(wanted.replace("|", "")) == wanted


def test_any_white_space_separates_words() -> None:
    assert _words("a\r\nb\tc\u00a0d\u3000e\u2028f\x1cg\x85h") == list("abcdefgh")
    assert _words("") == _words(" \r\n ") == []


def _is_law_kept(text: str) -> bool:
    return "".join(_words(text)) == "".join(text.split())


@pytest.mark.slow
def test_every_code_point_lies_in_one_word_alone_or_between_letters() -> None:
    for first in range(0, sys.maxunicode + 1, 0x1000):
        characters = [chr(code) for code in range(first, first + 0x1000)]
        assert _is_law_kept(" ".join(characters)), hex(first)
        assert first > 0x1FFFF or _is_law_kept("x".join(characters)), hex(first)


def test_offsets_count_characters_not_bytes() -> None:
    assert split_words("😀 é\n細") == [(0, 1), (2, 3), (4, 5)]


NASTY = [
    *[(pattern, 1_000_000) for pattern in ("(", "-", "a-", "7", " ", "a.")],
    *[
        (pattern, 100_000)
        for pattern in (
            "a(A",
            "a(A)",
            "a'",
            "1,",
            "a&",
            "a.+",
            "a@",
            "a@a.",
            "http://",
            "http://(",
            "www.)",
            "-aaaaed",
            "x-aaaae",
            "aa.A",
            "!?",
            "\u0301",
            "👩\u200d",
            "🇩",
            "(.",
        )
    ],
]


@pytest.mark.parametrize(("pattern", "length"), NASTY)
def test_time_is_linear(pattern: str, length: int) -> None:
    text = (pattern * (length // len(pattern) + 1))[:length]
    began = time.process_time()
    spans = split_words(text)
    assert time.process_time() - began < 10  # quadratic time would be hours
    assert sum(end - start for start, end in spans) == length - text.count(" ")
