"""Colours of labels in the terminal and in HTML, and the CSS rules that draw their names.

Labels are numbered in the order of their first occurrence; a number determines the colour. In HTML
the name of a label is a background image of its bar: it is not part of the text, is repeated on
every line that the bar continues on, and needs no room between the words.
"""

from __future__ import annotations

from enum import Enum
from html import escape
from urllib.parse import quote

from rich.cells import cell_len

from spandet.viewing.cells import printable
from spandet.viewing.outcomes import Outcome

# Entries of the 256-colour palette; each has a contrast of at least 3 on black and on white.
TERMINAL_COLORS = (33, 166, 28, 163, 136, 99, 30, 160, 64, 67, 132, 94)

_GOLDEN_ANGLE = 137.508  # so that the hues of successive numbers are far apart
_NOT_IN_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
_STROKES = {
    Outcome.HIT: "M1 7l3 3 5-7",
    Outcome.MISS: "M1.5 3l7 7m0-7l-7 7",
    Outcome.FALSE_ALARM: "M5 2.5v8M1 6.5h8",
}
_DARK = "@media(prefers-color-scheme:dark)"


class LabelNumbers:
    """Numbers the labels 0, 1, 2, … by first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __getitem__(self, label: str) -> int:
        return self._numbers.setdefault(label, len(self._numbers))

    def labels(self) -> list[str]:
        """All labels so far, by number."""
        return list(self._numbers)


def terminal_style(number: int) -> str:
    """The rich style of a label."""
    return f"color({TERMINAL_COLORS[number % len(TERMINAL_COLORS)]})"


class Theme(Enum):
    """OKLCH lightness and chroma of letters, then of the bars below them."""

    LIGHT = ("42%", "0.13", "91%", "0.055")
    DARK = ("88%", "0.08", "37%", "0.075")


def ink(number: int, theme: Theme) -> str:
    """The CSS colour of a label's letters and lines."""
    lightness, chroma, _, _ = theme.value
    return f"oklch({lightness} {chroma} {_hue(number)})"


def tint(number: int, theme: Theme) -> str:
    """The CSS colour of a label's bars."""
    _, _, lightness, chroma = theme.value
    return f"oklch({lightness} {chroma} {_hue(number)})"


def _hue(number: int) -> int:
    return round(255 + number * _GOLDEN_ANGLE) % 360


def label_pixels(label: str) -> int:
    """The approximate width of the name of a label on its bar."""
    return round(6.1 * cell_len(printable(label))) + 7


def label_rules(number: int, label: str) -> str:
    """The CSS of class `k<number>`, and of `hide-<number>`, which hides its bars."""
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
    """The CSS of the symbols of outcomes; images, because fonts differ."""
    return "".join(
        f".{outcome.value}{{--symbol:{_symbol(strokes, '#1c2024')}}}"
        f"{_DARK}{{.{outcome.value}{{--symbol:{_symbol(strokes, '#edeef0')}}}}}\n"
        for outcome, strokes in _STROKES.items()
    )


def _name(label: str, color: str, anchor: str) -> str:
    width = label_pixels(label)
    text = escape(printable(label).translate(_NOT_IN_XML), quote=False)
    return _image(
        width,
        f"<text x='{3 if anchor == 'start' else width - 3}' y='10' text-anchor='{anchor}' "
        f"font-family='system-ui,sans-serif' font-size='10' fill='{color}'>{text}</text>",
    )


def _symbol(strokes: str, color: str) -> str:
    return _image(10, f"<path d='{strokes}' fill='none' stroke='{color}' stroke-width='1.6'/>")


def _image(width: int, content: str) -> str:
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='13'>{content}</svg>"
    return f'url("data:image/svg+xml,{quote(svg, safe=" /:=")}")'
