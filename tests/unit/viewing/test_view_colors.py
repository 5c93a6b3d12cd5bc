"""Colours can be read on light and dark backgrounds, and differ clearly."""

from __future__ import annotations

import math
import re

import pytest

from spandet.rendering.html import html_page
from spandet.viewing.labels import TERMINAL_COLORS, LabelNumbers, Theme, ink, terminal_style, tint

Color = tuple[float, float, float]
"""Linear red, green and blue, 0 to 1."""


def luminance(color: Color) -> float:
    red, green, blue = color
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of the accessibility guidelines (WCAG 2), 1 to 21."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def linear(channel: int) -> float:
    part = channel / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def from_palette(number: int) -> Color:
    """A colour of the 6 x 6 x 6 cube of the 256-colour palette."""
    levels = [0, 95, 135, 175, 215, 255]
    cube = number - 16
    return (
        linear(levels[cube // 36]),
        linear(levels[cube // 6 % 6]),
        linear(levels[cube % 6]),
    )


def from_oklch(css: str) -> Color:
    """Björn Ottosson's OKLCH, clipped to what a screen can show."""
    match = re.fullmatch(r"oklch\((\S+)% (\S+) (\S+)\)", css)
    assert match is not None
    lightness, chroma, hue = float(match[1]) / 100, float(match[2]), math.radians(float(match[3]))
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    return (_clipped(red), _clipped(green), _clipped(blue))


def _clipped(channel: float) -> float:
    return min(1.0, max(0.0, channel))


def background(theme: Theme) -> Color:
    """The background colour of a page, from its style sheet."""
    light, dark = re.findall(r"--back: #(\w{6})", html_page(title="t", body=""))
    found = light if theme is Theme.LIGHT else dark
    red, green, blue = bytes.fromhex(found)
    return linear(red), linear(green), linear(blue)


@pytest.mark.parametrize("number", TERMINAL_COLORS)
def test_terminal_colours_are_readable_on_black_and_white(number: int) -> None:
    color = from_palette(number)
    assert contrast(color, (0, 0, 0)) >= 3
    assert contrast(color, (1, 1, 1)) >= 3


@pytest.mark.parametrize("theme", Theme)
@pytest.mark.parametrize("number", range(60))
def test_names_are_readable_on_their_bar_and_beside_it(number: int, theme: Theme) -> None:
    letters = from_oklch(ink(number, theme))
    assert contrast(letters, from_oklch(tint(number, theme))) >= 4.5
    assert contrast(letters, background(theme)) >= 4.5


def test_the_first_twelve_labels_differ() -> None:
    assert len({terminal_style(number) for number in range(12)}) == 12
    assert len({ink(number, Theme.LIGHT) for number in range(12)}) == 12
    assert terminal_style(0) == terminal_style(12)


def test_labels_are_numbered_as_they_come() -> None:
    numbers = LabelNumbers()
    assert [numbers[label] for label in ["b", "a", "b", "c", "a"]] == [0, 1, 0, 2, 1]
    assert numbers.labels() == ["b", "a", "c"]
