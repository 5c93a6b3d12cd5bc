"""One colour per label, by order of first occurrence; readable on light and on dark ground."""

from __future__ import annotations

from enum import Enum

# Numbers of the 256-colour palette. Each has a contrast of at least 3 on black and on white.
TERMINAL_COLORS = (33, 166, 28, 163, 136, 99, 30, 160, 64, 67, 132, 94)

_GOLDEN_ANGLE = 137.508  # successive hues never come back close to an earlier one


class LabelNumbers:
    """Numbers labels 0, 1, 2, … as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __getitem__(self, label: str) -> int:
        return self._numbers.setdefault(label, len(self._numbers))

    def labels(self) -> list[str]:
        """All labels so far, in the order of their numbers."""
        return list(self._numbers)


def terminal_style(number: int) -> str:
    """The rich style of a label."""
    return f"color({TERMINAL_COLORS[number % len(TERMINAL_COLORS)]})"


class Theme(Enum):
    """What a page is drawn on: OKLCH lightness and chroma of letters, and of the bar under them."""

    LIGHT = ("42%", "0.13", "91%", "0.055")
    DARK = ("88%", "0.08", "37%", "0.075")


def ink(number: int, theme: Theme) -> str:
    """The colour of a label's letters and lines, as CSS."""
    lightness, chroma, _, _ = theme.value
    return f"oklch({lightness} {chroma} {_hue(number)})"


def tint(number: int, theme: Theme) -> str:
    """The colour of a label's bars, as CSS."""
    _, _, lightness, chroma = theme.value
    return f"oklch({lightness} {chroma} {_hue(number)})"


def _hue(number: int) -> int:
    return round(255 + number * _GOLDEN_ANGLE) % 360
