"""Tokenisation of raw text in any script into words with exact character offsets.

An entity can only be found if it begins and ends at word boundaries, so doubtful cases are split:

- Letters and digits with all their marks; "_" counts as a letter, a zero-width character as a mark.
- Han, kana and the South-East Asian scripts without spaces: every character with its marks.
- One hyphen, apostrophe, full stop or "&" between letters joins them ("NF-kappa", "O'Neill",
  "PU.1", "R&D"), and so do "," and ":" between digits ("3,4-dihydroxy", "1,000.5", "12:30").
- Brackets around a few capitals, digits and signs stay inside ("Ca(2+)", "5-HT(1A)"), and so do
  "+" and "%" at the end ("CD4+", "3.5%").
- A hyphen opens a new word before an adjective ("CD28|-mediated"). A prefix before a capital is a
  word ("anti-|CD28"), and so are short forms with an apostrophe ("John|'s", "l'|Europe").
- Web and e-mail addresses, "U.S.", emoji and a run of one mark ("...", "---") are one word.
- Every other character that is not white space is a word: brackets, quotes, "/", controls.
"""

from __future__ import annotations

import regex

_SPACE = r"\s\x1c-\x1f"  # the same characters as str.isspace()
# Line_Break=SA is Unicode's class of scripts that need a dictionary to find words: Thai, Lao,
# Khmer, Myanmar and others.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Line_Break=SA}ーｰ"
_MARK = r"\p{M}\p{Cf}\p{GCB=Extend}\p{GCB=SpacingMark}"
_MARKS = rf"[{_MARK}]*+"
_ALPHABET = r"A-Za-z0-9\p{L}\p{N}\p{Pc}"
_LETTER = rf"[[{_ALPHABET}]--[{_UNSPACED}{_MARK}]]"
_LETTERS = rf"{_LETTER} [[{_ALPHABET}{_MARK}]--[[{_UNSPACED}]--[{_MARK}]]]*+"
_HYPHEN = r"[-\u2010\u2011]"
_ADJECTIVE = rf"""
    \p{{Ll}}{{4,}}+ (?<= ed|ing|en|ive|ible|able|ent|ant|ific|like|bound|free|rich ) (?!{_LETTER})
"""
_SHORT_FORM = rf"['’] (?i: s|re|ve|ll|d|m ) (?!{_LETTER})"
_PICTURE = rf"\p{{Extended_Pictographic}} {_MARKS}"
_IN_ADDRESS = rf"[[{_ALPHABET}\p{{M}}.~:/?\#\[\]@!$&'*+,;=%-]--[{_UNSPACED}]]"

# Every repetition is possessive, bounded or not followed by anything that overlaps with it: the
# time is linear in the length of the text.
_WORD = regex.compile(
    rf"""
      # The most frequent words; the rest of the pattern gives the same result, but is slower.
      [A-Za-z]++ (?=[\ ,;)]) | [,;()\[\]] (?=[\ A-Za-z0-9(\[])
    | (?! [{_SPACE}] ) {_MARKS}
      (?: (?i: (?:https?|ftp):// | www\. ) (?: {_IN_ADDRESS} | \( {_IN_ADDRESS}*+ \) )+
          (?<=[\w/=&\#%+~$@)-])
        | [A-Za-z0-9] [A-Za-z0-9._%+-]{{0,63}}
          @ (?: [A-Za-z0-9-]{{1,63}} \. ){{1,8}} [A-Za-z]{{2,63}}
        | (?<!\w) (?: \p{{L}} \. ){{2,}}+ (?!{_LETTER})
        | (?<!\w) (?i: anti|non|pre|post|pro|ex ) {_HYPHEN} (?=\p{{Lu}})
        | (?<!\w) (?i: [cdjlmnst]|qu ) ['’] (?=\p{{L}})
        | (?<=\w) {_SHORT_FORM}
        | (?<=[^{_SPACE}]) {_HYPHEN} {_ADJECTIVE}
        | {_LETTERS}
          (?: (?! {_HYPHEN} {_ADJECTIVE} | {_SHORT_FORM} | (?<=\p{{Ll}}{{2}}|\p{{N}}) \. \p{{Lu}} )
              [-\u2010\u2011'’.·״׳&] {_LETTERS}
            | (?<=\p{{N}}) [,:] (?=\p{{N}}) {_LETTERS}
            | (?<=\p{{N}}) ['’′] (?={_HYPHEN})
            | \( [\p{{Lu}}\p{{N}}+−/-]{{1,4}} \) (?:{_LETTERS})?
          )*+
          (?: (?<=\p{{N}}) [%‰] | \+ (?!\+) )? {_MARKS}
        | {_PICTURE} (?: (?<=\u200d) {_PICTURE} )*+
        | \p{{Regional_Indicator}}{{2}} {_MARKS}
        | [{_UNSPACED}] {_MARKS}
        | [!?！？]{{2,}}+ {_MARKS}
        | ([^\p{{Ps}}\p{{Pe}}\p{{Pi}}\p{{Pf}}{_SPACE}]) \1*+ {_MARKS}
        | [^{_SPACE}] {_MARKS}
      )
    | [{_MARK}]++  # marks at the end of the text or before a space
    """,
    regex.VERBOSE | regex.VERSION1,
)


def split_words(text: str) -> list[tuple[int, int]]:
    """Find the start and end of each word; each non-space character lies in exactly one word."""
    return [match.span() for match in _WORD.finditer(text)]
