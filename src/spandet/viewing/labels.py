"""The style rules of labels: their colours, and their names as pictures.

A name is a background picture of its bar. So it is no part of the text, stands again at the start
of every line that the bar continues on, and needs no room between the words.
"""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from rich.cells import cell_len

from spandet.viewing.cells import printable
from spandet.viewing.colors import Theme, ink, tint
from spandet.viewing.verdicts import Verdict

_NOT_IN_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
_STROKES = {
    Verdict.HIT: "M1 7l3 3 5-7",
    Verdict.MISS: "M1.5 3l7 7m0-7l-7 7",
    Verdict.FALSE_ALARM: "M5 2.5v8M1 6.5h8",
}
_DARK = "@media(prefers-color-scheme:dark)"


def label_pixels(label: str) -> int:
    """About how wide the name is when it is drawn on a bar."""
    return round(6.1 * cell_len(printable(label))) + 7


def label_rules(number: int, label: str) -> str:
    """The CSS of class `k<number>`, and of `hide-<number>` around it."""
    own = f".k{number}"
    light, dark = (
        f"{own}{{--ink:{ink(number, theme)};--tint:{tint(number, theme)};"
        f"--name:{_name(label, ink(number, theme), 'start')}}}"
        f"{own}:dir(rtl){{--name:{_name(label, ink(number, theme), 'end')}}}"
        for theme in (Theme.LIGHT, Theme.DARK)
    )
    return (
        f"{own}{{--wide:{label_pixels(label)}px}}{light}{_DARK}{{{dark}}}"
        f".hide-{number} mark{own}{{--bars:0px;background-image:none}}\n"
    )


def symbol_rules() -> str:
    """The CSS of the verdicts' symbols: drawn, so that they look the same in every font."""
    return "".join(
        f".{verdict.value}{{--symbol:{_symbol(strokes, '#1c2024')}}}"
        f"{_DARK}{{.{verdict.value}{{--symbol:{_symbol(strokes, '#edeef0')}}}}}\n"
        for verdict, strokes in _STROKES.items()
    )


def _name(label: str, color: str, anchor: str) -> str:
    width = label_pixels(label)
    text = escape(printable(label).translate(_NOT_IN_XML), quote=False)
    return _picture(
        width,
        f"<text x='{3 if anchor == 'start' else width - 3}' y='10' text-anchor='{anchor}' "
        f"font-family='system-ui,sans-serif' font-size='10' fill='{color}'>{text}</text>",
    )


def _symbol(strokes: str, color: str) -> str:
    return _picture(10, f"<path d='{strokes}' fill='none' stroke='{color}' stroke-width='1.6'/>")


def _picture(width: int, content: str) -> str:
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='13'>{content}</svg>"
    return f'url("data:image/svg+xml,{quote(svg, safe=" /:=")}")'
