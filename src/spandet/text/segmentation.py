"""Sentence splitting of raw text, by rules on words.

- A blank line always ends a sentence. A single line break does so only if the next word would have
  fitted on the line, as after a heading: wrapping a text at another width does not change its
  sentences.
- "?", "!" and the stops of other scripts end a sentence, unless the text continues in lower case.
- "." does the same, unless it belongs to an abbreviation, an initial, a list number or an ordinal.
  Where both readings are possible ("left the U.S. The …", "the U.S. Army"), the sentence ends if
  the next word often begins sentences.
- Closing quotes and brackets belong to the stop before them, and so do emoji and a reference like
  "[12]". A pair of brackets in the middle of a sentence is not split.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import regex

from spandet.text.sentence import Sentence
from spandet.text.words import split_words


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations are English and German, in lower case; a capital is allowed at their beginning.
_TITLES = _set(
    "Adm Capt Cmdr Col Cpl Dr Dra Fa Fr Frl Gen Gov Hon Hr Hrn Lt Maj Messrs Mlle Mme Mr Mrs Ms Mt "
    "Prof Pvt Rep Rev Sen Sgt Sra Supt"
)
_NEVER_LAST = _set(
    "approx bzgl bzw ca cf d.h e.g eg esp evtl ggf i.e ie incl inkl insb resp sog v vgl viz vs z.B "
    "zzgl"
)
_BEFORE_NUMBERS = _set(
    "abb abs anm app art bd ch chap ed eq eqs fig figs jg kap no nos nr pp ref refs sec "
    "sect suppl tab vol vols jan feb mar apr jun jul aug sep sept oct okt nov dec dez"
)
_SOMETIMES_LAST = _set(
    "al ave bldg blvd bros co corp dept est geb gest hrsg inc jr ltd mio mrd op ph.D plc rd sp spp "
    "sr st subsp temp univ var"
)
_OPENERS = _set(
    "A After All Also Although An And Another Are As At Because Before Both But By Does During "
    "Each Finally For From Further Furthermore He Hence Her Here His How However I If In Is It Its "
    "Many Moreover Most My No Not On One Only Our Several She Since So Some Such That The Their "
    "Then There Therefore These They This Those Though Thus To Two Under Upon Using We What When "
    "Where Whereas While Who Why With Yes You Your "
    "Aber Als Am Auch Auf Bei Da Dabei Damit Danach Dann Das Dem Den Der Des Die Dies Diese Dieser "
    "Dieses Doch Ein Eine Er Es Für Ich Ihr Im Mit Nach Nun Seit Sie Und Von Was Wenn Wer Wie Wir "
    "Zu Zum"
)
_BEFORE_ORDINALS = _set("ab am beim bis das dem den der des die im jeden jeder seit und vom zum")
_COUNTED = _set(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember "
    "Jahrhundert Jahrhunderts"
)
_OPENING = frozenset("([{（［｛【")
_CLOSING = frozenset(")]}）］｝】")
_WIDEST_BRACKET = 60  # words; in a wider pair, the brackets probably do not belong together

_NEW_LINE = r"(?>\r\n|[\n\r\x0b\x0c\x85\u2028])"
_LINE_BREAK = regex.compile(_NEW_LINE)
_BLANK_LINE = regex.compile(rf"{_NEW_LINE}[\s\x1c-\x1f]*?{_NEW_LINE}|\u2029")
_STOP = regex.compile(r"[…\p{Sentence_Terminal}]|\p{L}\S*\.$")
_AFTER_STOP = regex.compile(
    r"""(?P<closers> (?: [\p{Pe}\p{Pf}\p{Extended_Pictographic}\p{GCB=Extend}]
                       | [\p{Pi}"'] (?!\w)
                       | \[ [\d,\ –-]{1,20} \] )*+ )
        (?P<space> [\s\x1c-\x1f]*+ )
        [\p{Ps}\p{Pi}\p{Pf}"'¿¡]*+""",
    regex.VERBOSE,
)
_CONTINUES = regex.compile(r"[,;:…%&/)\]}、，；：\p{Sentence_Terminal}]")
_NUMBER_LIKE = regex.compile(r"\p{N}|\p{Lu}\p{N}|[B-HJ-Z]$|[IVX]+$")
# "p53", "mRNA", "bcl-2", "c-fos", "alpha"
_NAME_IN_LOWER_CASE = regex.compile(
    r"\p{Ll}{1,5}-?[\p{Lu}\p{N}]|\p{Ll}-\p{L}|(?:alpha|beta|gamma|delta|kappa)$"
)
# Words after which a single letter is not an initial: "24 h", "mol/L", "vitamin C".
_TAKES_A_LETTER = regex.compile(
    r"[\p{N}/\]]|\S*(?:in|ase|itis|kappa|[Cc]lass|[Gg]roup|region|strain|[Tt]ype)$"
)
_HIRAGANA = regex.compile(r"\p{Hiragana}")


class _Stop(NamedTuple):
    """A stop and the words around it; "" if there is none."""

    mark: str
    before: str
    """The word that the stop touches; "U.S." is both mark and word."""
    context: str
    """The word before that; "" at the beginning of a sentence."""
    closers: str
    spaced: bool
    after: str
    """The next word behind opening quotes and brackets."""
    after_next: str


def segment(text: str) -> tuple[Sentence, ...]:
    """Split a raw text into sentences; each word of `split_words` lies in exactly one."""
    spans = split_words(text)
    words = [text[start:end] for start, end in spans]
    starts = [start for start, _ in spans]
    borders = [*sentence_starts(text, words, starts), len(words)]
    return tuple(
        Sentence(tuple(words[first:end]), tuple(starts[first:end]))
        for first, end in pairwise(borders)
    )


def sentence_starts(text: str, words: Sequence[str], starts: Sequence[int]) -> list[int]:
    """The first word of each sentence, as indices of `words`, which start at `starts` in `text`."""
    blank_lines = _BLANK_LINE.finditer(text)
    borders = [0, *(bisect_left(starts, match.end()) for match in blank_lines), len(words)]
    return [
        first + index
        for first, end in pairwise(borders)
        if first < end
        for index in _starts_in_paragraph(text, words[first:end], starts[first:end])
    ]


def _starts_in_paragraph(text: str, words: Sequence[str], starts: Sequence[int]) -> list[int]:
    found = {0, *_after_short_lines(text[starts[0] : starts[-1] + len(words[-1])], starts)}
    in_brackets = _in_brackets(words)
    for index, word in enumerate(words):
        if (word[-1] == "." or not word[0].isalnum()) and _STOP.match(word):
            stop, following = _stop_at(text, words, starts, index, found)
            opening = in_brackets.get(following, 0)
            if following < len(words) and opening in found and _ends_sentence(stop):
                found.add(following)
    return sorted(found)


def _in_brackets(words: Sequence[str]) -> dict[int, int]:
    """Map each word inside a pair of brackets to the opening bracket of the outermost pair."""
    opened: list[int] = []
    inside: dict[int, int] = {}
    for index, word in enumerate(words):
        if word in _OPENING:
            opened.append(index)
        elif word in _CLOSING and opened:
            opening = opened.pop()
            if index - opening <= _WIDEST_BRACKET:
                inside.update(dict.fromkeys(range(opening + 1, index + 1), opening))
    return inside


def _stop_at(
    text: str, words: Sequence[str], starts: Sequence[int], index: int, found: set[int]
) -> tuple[_Stop, int]:
    """The stop at words[index], and the word that a new sentence would begin with."""
    mark = words[index]
    tail = _AFTER_STOP.match(text, starts[index] + len(mark))
    assert tail is not None  # noqa: S101 (it matches the empty string)
    following = _first_from(tail.end("closers"), starts, index + 1)
    after = _first_from(tail.end(), starts, following)
    owner = index if mark[0].isalpha() else index - 1
    touches = owner == index or (owner >= 0 and starts[owner] + len(words[owner]) == starts[index])
    stop = _Stop(
        mark=mark,
        before=words[owner] if touches else "",
        context=words[owner - 1] if owner > 0 and owner not in found else "",
        closers=tail["closers"],
        spaced=bool(tail["space"]),
        after=words[after] if after < len(words) else "",
        after_next=words[after + 1] if after + 1 < len(words) else "",
    )
    return stop, following


def _first_from(position: int, starts: Sequence[int], index: int) -> int:
    while index < len(starts) and starts[index] < position:
        index += 1
    return index


def _ends_sentence(stop: _Stop) -> bool:
    if _CONTINUES.match(stop.after):
        return False
    if stop.mark[0] in "。｡！？":
        # The sentence continues in 「本当？」と言った, and ends in 「行きます。」彼は…
        continues = stop.mark[0] in "！？" or _HIRAGANA.match(stop.after)
        return not (stop.closers and continues)
    if not stop.spaced:
        return stop.mark[-1] not in ".…!?" or _is_space_missing(stop)
    if stop.after[:1].islower() and not _NAME_IN_LOWER_CASE.match(stop.after):
        return False
    if stop.mark.startswith(("..", "…")):
        return stop.after[:1].isupper() and stop.after != "I"
    return stop.mark[-1] != "." or not _is_abbreviated(stop)


def _is_space_missing(stop: _Stop) -> bool:
    """Whether the space between two sentences is missing ("It ended.Then it began.")."""
    case_changes = stop.before[-2:].islower() and stop.after[:1].isupper()
    return bool(stop.before) and (case_changes or stop.after in _OPENERS)


def _is_abbreviated(stop: _Stop) -> bool:
    """Whether the full stop belongs to an abbreviation and the sentence continues."""
    word = stop.before
    key = word[:1].lower() + word[1:].rstrip(".")  # "Cf." is "cf.", but "CF." is not
    if word in _TITLES or key in _NEVER_LAST:
        return True
    if word.isdecimal():
        return _is_ordinal(stop)
    if key in _BEFORE_NUMBERS or key.endswith("str"):  # German streets: "Hauptstr. 5"
        return _NUMBER_LIKE.match(stop.after) is not None
    is_letter = len(word) == 1 and word.lower() != word.upper()
    if is_letter and _TAKES_A_LETTER.match(stop.context):
        return False
    if is_letter or word == stop.mark or key in _SOMETIMES_LAST:
        return not _opens_sentence(stop)
    return False


def _opens_sentence(stop: _Stop) -> bool:
    """Whether the next word often begins sentences ("The", not the initial "A.") or is a heading.

    A heading is followed by a colon: "AIM:".
    """
    is_initial = len(stop.after) == 1 and stop.after_next == "."
    return stop.after_next == ":" or (stop.after in _OPENERS and not is_initial)


def _is_ordinal(stop: _Stop) -> bool:
    """Whether the number is that of a list item or a day or, in German, any ordinal."""
    if len(stop.before) > 2:
        return False
    counted = stop.context.lower() in _BEFORE_ORDINALS and stop.after not in _OPENERS
    return not stop.context or stop.after in _COUNTED or counted


def _after_short_lines(paragraph: str, starts: Sequence[int]) -> Iterator[int]:
    """Find the words at the start of a line that would have fitted on the line before."""
    lines = [line.rstrip() for line in _LINE_BREAK.split(paragraph)]
    wide = max(map(len, lines)) * 3 // 4
    for (line, below), match in zip(pairwise(lines), _LINE_BREAK.finditer(paragraph), strict=True):
        first = below.split(maxsplit=1)[0]
        if len(line) + 1 + len(first) <= wide and not first[0].islower():
            yield bisect_left(starts, starts[0] + match.end())
