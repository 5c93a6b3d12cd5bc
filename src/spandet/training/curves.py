"""Curves as inline SVG: no script, no network, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

Point = tuple[float, float]

STYLE = """
svg.curves { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg.curves text { fill: var(--soft); } svg.curves .grid { stroke: var(--line); }
svg.curves polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg.curves circle { stroke: none; }
"""

_WIDTH, _HEIGHT = 680, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 12, 34
_HUES = (255, 32, 150, 325, 85, 200)
_MOST_DOTS = 60


def curves(series: Mapping[str, Sequence[Point]], *, across: str, title: str) -> str:
    """Lines over a common ground; `across` names what runs from left to right.

    Values that are no numbers are left out. Dots, which show their value, are drawn where they
    are few.
    """
    shown = {
        name: [p for p in points if all(map(math.isfinite, p))] for name, points in series.items()
    }
    points = [point for own in shown.values() for point in own]
    if not points:
        return ""
    frame = _Frame(points)
    parts = [*frame.grid(across)]
    for number, (name, own) in enumerate(shown.items()):
        parts += _line(name, own, frame, number)
    body = "\n".join(parts)
    return (
        f'<svg class="curves" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">'
        f"<title>{escape(title)}</title>\n{body}\n</svg>"
    )


class _Frame:
    """Where a value lies on the drawing."""

    def __init__(self, points: Sequence[Point]) -> None:
        xs, ys = zip(*points, strict=True)
        self.x = (min(xs), max(xs))
        self.y_ticks = _ticks(min(0.0, *ys), max(0.0, *ys))
        self.y = (self.y_ticks[0], self.y_ticks[-1])

    def place(self, point: Point) -> Point:
        x, y = point
        inner = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return (
            round(_LEFT + inner[0] * _share(x, self.x), 2),
            round(_TOP + inner[1] * (1 - _share(y, self.y)), 2),
        )

    def grid(self, across: str) -> Iterable[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        for tick in self.y_ticks:
            _, y = self.place((self.x[0], tick))
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:g}</text>'
        for edge, anchor in ((_LEFT, "start"), (right, "end")):
            value = self.x[anchor == "end"]
            yield f'<text x="{edge}" y="{bottom + 16}" text-anchor="{anchor}">{value:g}</text>'
        middle = (_LEFT + right) / 2
        yield f'<text x="{middle}" y="{bottom + 28}" text-anchor="middle">{escape(across)}</text>'


def _line(name: str, points: Sequence[Point], frame: _Frame, number: int) -> list[str]:
    color = f"oklch(0.62 0.17 {_HUES[number % len(_HUES)]})"
    dashes = f' stroke-dasharray="{4 * (number // len(_HUES))} 3"' if number >= len(_HUES) else ""
    placed = [frame.place(point) for point in points]
    track = " ".join(f"{x},{y}" for x, y in placed)
    legend = _TOP + 12 + 18 * number, _WIDTH - _RIGHT + 12
    parts = [
        f'<polyline points="{track}" stroke="{color}"{dashes}/>',
        f'<rect x="{legend[1]}" y="{legend[0] - 8}" width="10" height="10" fill="{color}"/>',
        f'<text x="{legend[1] + 16}" y="{legend[0] + 1}">{escape(name)}</text>',
    ]
    if len(placed) <= _MOST_DOTS:
        parts += [
            f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"><title>{escape(name)}: '
            f"{value:.4g} at {at:g}</title></circle>"
            for (x, y), (at, value) in zip(placed, points, strict=True)
        ]
    return parts


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high > low else 0.5


def _ticks(low: float, high: float) -> list[float]:
    """A few round values that enclose both ends, one of which is 0."""
    size = high - low if high - low > 1e-12 else 1.0
    power = 10.0 ** math.floor(math.log10(size / 6))
    step = next(power * factor for factor in (1, 2, 5, 10) if size <= 6 * power * factor)
    slack = 1e-10 * (high - low)  # a step of 0.1 is not quite that
    first, last = math.floor((low + slack) / step), math.ceil((high - slack) / step)
    return [i * step for i in range(first, max(last, first + 1) + 1)]
