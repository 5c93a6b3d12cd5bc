"""Plots as inline SVG: no script, no network, for light and dark mode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple, TypeGuard

STYLE = """
figure { margin: .4rem 0; }
svg.plot { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg.plot text { fill: var(--soft); } svg.plot .name { fill: var(--ink); }
svg.plot .grid { stroke: var(--line); }
svg.plot polyline { fill: none; stroke-linejoin: round; }
"""

Point = tuple[float, float]
Values = Sequence[float | None]

_HUES = (255, 32, 150, 325, 85, 200)
_WIDTH, _HEIGHT = 680, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 190, 12, 40
_INNER_WIDTH, _INNER_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_LETTER_WIDTH = 6.5
"""Approximate."""
_LABEL_LETTERS = 24
"""Longer axis labels are shortened."""
_DOTTED_POINTS = 60
"""Longer lines have no dots."""
_ROW_HEIGHT = 24
_NAMES_WIDTH = 230


class _Dot(NamedTuple):
    x: float
    y: float
    title: str


def line_plot(series: Mapping[str, Sequence[Point]], *, x_label: str, title: str) -> str:
    """Lines through (x, y) points; the y axis includes 0. Empty without a finite point.

    Args:
        series: The points of each line, by its name; points that are not finite are omitted.
        x_label: The text below the x axis.
        title: The description for screen readers.
    """
    finite = {
        name: [p for p in points if all(map(math.isfinite, p))] for name, points in series.items()
    }
    everything = [point for points in finite.values() for point in points]
    if not everything:
        return ""
    low, high = min(x for x, _ in everything), max(x for x, _ in everything)
    ticks = axis_ticks([0.0, *(y for _, y in everything)])

    def place(x: float) -> float:
        return _LEFT + _INNER_WIDTH * ((x - low) / (high - low) if high > low else 0.5)

    parts = [*_y_axis(ticks), _x_label(x_label)]
    for x, value, anchor in ((_LEFT, low, "start"), (_LEFT + _INNER_WIDTH, high, "end")):
        parts.append(_text(x, _HEIGHT - _BOTTOM + 16, f"{value:g}", anchor=anchor))
    for number, (name, points) in enumerate(finite.items()):
        dots = [_Dot(place(x), _y(y, ticks), f"{name}: {y:.4g} at {x:g}") for x, y in points]
        parts += _line(name, dots, number)
    return _svg(parts, height=_HEIGHT, title=title)


def category_plot(
    series: Mapping[str, Values],
    categories: Sequence[str],
    *,
    x_label: str,
    title: str,
    from_zero: bool = False,
) -> str:
    """Lines over equally spaced categories. Empty without a finite value.

    Args:
        series: One value per category for each line, by its name; None and NaN are omitted.
        categories: The names of the categories.
        x_label: The text below the categories.
        title: The description for screen readers.
        from_zero: Include 0 in the y axis; otherwise it covers the range of the values only.
    """
    values = [value for own in series.values() for value in own if _is_number(value)]
    if not values:
        return ""
    ticks = axis_ticks([0.0, *values] if from_zero else values)
    xs = [_LEFT + _INNER_WIDTH * (i + 0.5) / len(categories) for i in range(len(categories))]
    parts = [*_y_axis(ticks), *_category_labels(categories, xs), _x_label(x_label)]
    for number, (name, own) in enumerate(series.items()):
        dots = [
            _Dot(x, _y(value, ticks), f"{name}: {value:.4g}")
            for x, value in zip(xs, own, strict=True)
            if _is_number(value)
        ]
        parts += _line(name, dots, number)
    return _svg(parts, height=_HEIGHT, title=title)


def dot_plot(
    values: Mapping[str, tuple[float | None, float | None]],
    *,
    x_label: str,
    title: str,
    from_zero: bool = False,
) -> str:
    """One row per name: a dot at its value, with an error bar. Empty without a finite value.

    Args:
        values: Value and standard deviation of each name; None where unknown.
        x_label: The text below the x axis.
        title: The description for screen readers.
        from_zero: Include 0 in the x axis; otherwise it covers the range of the values only.
    """
    known = {name: (v, d or 0.0) for name, (v, d) in values.items() if _is_number(v)}
    if not known:
        return ""
    ends = [v + sign * d for v, d in known.values() for sign in (-1, 1)]
    ticks = axis_ticks([0.0, *ends] if from_zero else ends)
    width, bottom = _WIDTH - _NAMES_WIDTH - 40, _TOP + _ROW_HEIGHT * len(values)

    def place(value: float) -> float:
        return _NAMES_WIDTH + width * _share(value, ticks)

    parts = []
    for tick in ticks:
        parts.append(_rule(place(tick), place(tick), _TOP, bottom))
        parts.append(_text(place(tick), bottom + 16, f"{tick:g}", anchor="middle"))
    for number, name in enumerate(values):
        y = _TOP + _ROW_HEIGHT * (number + 0.5)
        label = _shortened(name, int((_NAMES_WIDTH - 12) / _LETTER_WIDTH))
        parts.append(_text(_NAMES_WIDTH - 12, y + 4, label, anchor="end", kind="name"))
        if name in known:
            value, deviation = known[name]
            text = f"{name}: {value:.4g}" + (f" ± {deviation:.2g}" if deviation else "")
            error_bar = place(value - deviation), place(value + deviation)
            parts.append(_rule(*error_bar, y, y, stroke=_color(0)))
            parts.append(_circle(_Dot(place(value), y, text), _color(0), radius=3.5))
    parts.append(_text(_NAMES_WIDTH + width / 2, bottom + 32, x_label, anchor="middle"))
    return _svg(parts, height=bottom + 40, title=title)


def axis_ticks(values: Iterable[float]) -> list[float]:
    """Two to seven round numbers at equal distances that enclose all values."""
    known = list(values)
    low, high = min(known), max(known)
    span = high - low
    size = span if span > 1e-9 * max(1.0, abs(high)) else max(abs(high), 1.0) / 10
    power = 10.0 ** math.floor(math.log10(size / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if size <= 5 * power * factor)
    slack = 1e-10 * span  # multiples of a step such as 0.1 are not exact
    first, last = math.floor((low + slack) / step), math.ceil((high - slack) / step)
    first -= first * step > low + 5 * slack  # large values: the division is not exact either
    last += last * step < high - 5 * slack
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _share(value: float, ticks: Sequence[float]) -> float:
    return (value - ticks[0]) / (ticks[-1] - ticks[0])


def _y(value: float, ticks: Sequence[float]) -> float:
    return _TOP + _INNER_HEIGHT * (1 - _share(value, ticks))


def _y_axis(ticks: Sequence[float]) -> Iterator[str]:
    for tick in ticks:
        y = _y(tick, ticks)
        yield _rule(_LEFT, _LEFT + _INNER_WIDTH, y, y)
        yield _text(_LEFT - 8, y + 4, f"{tick:g}", anchor="end")


def _x_label(text: str) -> str:
    return _text(_LEFT + _INNER_WIDTH / 2, _HEIGHT - 6, text, anchor="middle")


def _category_labels(categories: Sequence[str], xs: Sequence[float]) -> Iterator[str]:
    """The names of all categories, or of every n-th one where there is no room for all."""
    room = _INNER_WIDTH / len(categories)
    longest = max(min(len(name), _LABEL_LETTERS) for name in categories)
    every = math.ceil((longest + 1) * _LETTER_WIDTH / room)
    for name, x in list(zip(categories, xs, strict=True))[::every]:
        label = _shortened(name, _LABEL_LETTERS)
        yield _text(x, _HEIGHT - _BOTTOM + 16, label, anchor="middle", kind="name")


def _line(name: str, dots: Sequence[_Dot], number: int) -> Iterator[str]:
    """A line, its entry in the legend, and its dots unless there are many."""
    color = _color(number)
    has_dots = len(dots) <= _DOTTED_POINTS
    # The first line is wider, so that it is visible where another one covers it.
    is_wide = number == 0 and has_dots
    dashes = f' stroke-dasharray="{4 * (number // len(_HUES))} 3"' if number >= len(_HUES) else ""
    track = " ".join(f"{dot.x:.2f},{dot.y:.2f}" for dot in dots)
    width = 4 if is_wide else 1.8
    yield f'<polyline points="{track}" stroke="{color}" stroke-width="{width}"{dashes}/>'
    left, top = _WIDTH - _RIGHT + 12, _TOP + 12 + 18 * number
    yield f'<rect x="{left}" y="{top - 8}" width="10" height="10" fill="{color}"/>'
    label = _shortened(name, int((_RIGHT - 28) / _LETTER_WIDTH))
    yield _text(left + 16, top + 1, label, anchor="start")
    if has_dots:
        yield from (_circle(dot, color, radius=5.5 if is_wide else 3.5) for dot in dots)


def _color(number: int) -> str:
    return f"oklch(0.62 0.17 {_HUES[number % len(_HUES)]})"


def _shortened(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _circle(dot: _Dot, color: str, *, radius: float) -> str:
    place = f'cx="{dot.x:.2f}" cy="{dot.y:.2f}" r="{radius}" fill="{color}"'
    return f"<circle {place}><title>{escape(dot.title)}</title></circle>"


def _rule(x1: float, x2: float, y1: float, y2: float, stroke: str = "") -> str:
    style = f'stroke="{stroke}" stroke-width="1.8"' if stroke else 'class="grid"'
    return f'<line {style} x1="{x1:.2f}" x2="{x2:.2f}" y1="{y1:.2f}" y2="{y2:.2f}"/>'


def _text(x: float, y: float, text: str, *, anchor: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Iterable[str], *, height: float, title: str) -> str:
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}">'
        f"<title>{escape(title)}</title>\n" + "\n".join(parts) + "\n</svg>"
    )
