"""Plots of a few measured things side by side, as inline SVG: no script, light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TypeGuard

STYLE = """
svg.plot { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg.plot text { fill: var(--soft); } svg.plot .name { fill: var(--ink); }
svg.plot .grid { stroke: var(--line); }
svg.plot polyline { fill: none; stroke-linejoin: round; }
"""

_HUES = (255, 32, 150, 325, 85, 200)
_WIDTH, _HEIGHT = 680, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 190, 12, 40
_LETTER = 6.5
"""Width of a letter, about."""
_LONGEST = 24
_ROW = 24
_NAMES = 230

Values = Sequence[float | None]


def lines(
    series: Mapping[str, Values],
    places: Sequence[str],
    *,
    across: str,
    title: str,
    from_zero: bool = False,
) -> str:
    """A line for each series over equally spaced places; a gap where there is no value.

    Args:
        series: By name, one value for each place.
        places: What stands below the axis.
        across: What the places are.
        title: For those who do not see the plot.
        from_zero: Let the axis begin at 0; else it shows differences.
    """
    values = [value for own in series.values() for value in own if _is_number(value)]
    if not values:
        return ""
    ticks = axis([0.0, *values] if from_zero else values)
    inner = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    xs = [_LEFT + inner[0] * (i + 0.5) / len(places) for i in range(len(places))]

    def height(value: float) -> float:
        return _TOP + inner[1] * (1 - _share(value, ticks))

    parts = []
    for tick in ticks:
        right = _WIDTH - _RIGHT
        parts.append(_rule(_LEFT, right, height(tick), height(tick)))
        parts.append(_text(_LEFT - 8, height(tick) + 4, f"{tick:g}", anchor="end"))
    parts += _below(places, xs, inner[0])
    middle = _LEFT + inner[0] / 2
    parts.append(_text(middle, _HEIGHT - 6, across, anchor="middle"))
    for number, (name, own) in enumerate(series.items()):
        dots = [(x, height(v), v) for x, v in zip(xs, own, strict=True) if _is_number(v)]
        parts += _line(name, dots, number)
    return _svg(parts, height=_HEIGHT, title=title)


def rows(
    values: Mapping[str, tuple[float | None, float | None]],
    *,
    across: str,
    title: str,
    from_zero: bool = False,
) -> str:
    """A dot for each name, one below the other, with a whisker of its deviation to both sides.

    Args:
        values: Of each name the value and its deviation; None where there is none.
        across: What the values are.
        title: For those who do not see the plot.
        from_zero: Let the axis begin at 0; else it shows differences.
    """
    known = {name: (v, d or 0.0) for name, (v, d) in values.items() if _is_number(v)}
    if not known:
        return ""
    ends = [v + sign * d for v, d in known.values() for sign in (-1, 1)]
    ticks = axis([0.0, *ends] if from_zero else ends)
    inner, bottom = _WIDTH - _NAMES - 40, _TOP + _ROW * len(values)

    def place(value: float) -> float:
        return _NAMES + inner * _share(value, ticks)

    parts = []
    for tick in ticks:
        parts.append(_rule(place(tick), place(tick), _TOP, bottom))
        parts.append(_text(place(tick), bottom + 16, f"{tick:g}", anchor="middle"))
    for number, name in enumerate(values):
        y = _TOP + _ROW * (number + 0.5)
        shown = _short(name, int((_NAMES - 12) / _LETTER))
        parts.append(_text(_NAMES - 12, y + 4, shown, anchor="end", kind="name"))
        if name in known:
            value, deviation = known[name]
            ends_ = place(value - deviation), place(value + deviation)
            said = f"{name}: {value:.4g}" + (f" ± {deviation:.2g}" if deviation else "")
            parts.append(_rule(*ends_, y, y, stroke=_color(0)))
            parts.append(_dot(place(value), y, _color(0), said))
    parts.append(_text(_NAMES + inner / 2, bottom + 32, across, anchor="middle"))
    return _svg(parts, height=bottom + 40, title=title)


def axis(values: Iterable[float]) -> list[float]:
    """A few round numbers that enclose all values."""
    known = list(values)
    low, high = min(known), max(known)
    size = high - low if high - low > 1e-9 * max(1.0, abs(high)) else max(abs(high), 1.0) / 10
    power = 10.0 ** math.floor(math.log10(size / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if size <= 5 * power * factor)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _share(value: float, ticks: Sequence[float]) -> float:
    return (value - ticks[0]) / (ticks[-1] - ticks[0])


def _below(places: Sequence[str], xs: Sequence[float], width: float) -> Iterable[str]:
    """As many of the places' names as there is room for."""
    room = width / len(places)
    longest = max(min(len(place), _LONGEST) for place in places)
    every = math.ceil((longest + 1) * _LETTER / room)
    for number, (place, x) in enumerate(zip(places, xs, strict=True)):
        if number % every == 0:
            y = _HEIGHT - _BOTTOM + 16
            yield _text(x, y, _short(place, _LONGEST), anchor="middle", kind="name")


def _line(name: str, dots: Sequence[tuple[float, float, float]], number: int) -> list[str]:
    # The first line is bolder, so that one that lies on it does not hide it.
    color, width, radius = _color(number), 1.8 if number else 4, 3.5 if number else 5.5
    dashes = f' stroke-dasharray="{4 * (number // len(_HUES))} 3"' if number >= len(_HUES) else ""
    track = " ".join(f"{x:.2f},{y:.2f}" for x, y, _ in dots)
    left, top = _WIDTH - _RIGHT + 12, _TOP + 12 + 18 * number
    return [
        f'<polyline points="{track}" stroke="{color}" stroke-width="{width}"{dashes}/>',
        f'<rect x="{left}" y="{top - 8}" width="10" height="10" fill="{color}"/>',
        _text(left + 16, top + 1, _short(name, int((_RIGHT - 28) / _LETTER)), anchor="start"),
        *(_dot(x, y, color, f"{name}: {value:.4g}", radius) for x, y, value in dots),
    ]


def _color(number: int) -> str:
    return f"oklch(0.62 0.17 {_HUES[number % len(_HUES)]})"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _dot(x: float, y: float, color: str, said: str, radius: float = 3.5) -> str:
    where = f'cx="{x:.2f}" cy="{y:.2f}" r="{radius}" fill="{color}"'
    return f"<circle {where}><title>{escape(said)}</title></circle>"


def _rule(x1: float, x2: float, y1: float, y2: float, stroke: str = "") -> str:
    look = f'stroke="{stroke}" stroke-width="1.8"' if stroke else 'class="grid"'
    return f'<line {look} x1="{x1:.2f}" x2="{x2:.2f}" y1="{y1:.2f}" y2="{y2:.2f}"/>'


def _text(x: float, y: float, text: str, *, anchor: str, kind: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    return f'<text{look} x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Iterable[str], *, height: float, title: str) -> str:
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}">'
        f"<title>{escape(title)}</title>\n" + "\n".join(parts) + "\n</svg>"
    )
