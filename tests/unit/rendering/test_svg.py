from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from hypothesis import example, given
from hypothesis import strategies as st

from spandet.rendering.svg import axis_ticks, category_plot, dot_plot, line_plot

NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.just(math.nan)
REALS = st.floats(-1e6, 1e6) | st.just(math.nan)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)


def parsed(drawn: str) -> tuple[ET.Element, list[tuple[float, float]]]:
    tree = ET.fromstring(drawn)  # noqa: S314 (our own)
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in tree.iter("circle")]
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    assert all(0 <= x <= width and 0 <= y <= height for x, y in dots)
    return tree, dots


@given(
    st.integers(1, 30).flatmap(
        lambda count: st.dictionaries(
            NAMES, st.lists(NUMBERS, min_size=count, max_size=count), min_size=1, max_size=9
        )
    ),
    st.booleans(),
)
def test_lines_show_every_number_where_it_belongs(
    series: dict[str, list[float | None]], from_zero: bool
) -> None:
    places = [f"<{number}>" for number in range(len(next(iter(series.values()))))]
    drawn = category_plot(
        series, places, x_label="steps & <more>", title="a title", from_zero=from_zero
    )
    numbers = [v for own in series.values() for v in own if v is not None and math.isfinite(v)]
    if not numbers:
        assert drawn == ""
        return
    _, dots = parsed(drawn)
    assert len(dots) == len(numbers)
    for (_, higher), a in zip(dots, numbers, strict=True):
        for (_, lower), b in zip(dots, numbers, strict=True):
            assert a <= b or higher <= lower


@given(st.dictionaries(NAMES, st.tuples(NUMBERS, st.none() | st.floats(0, 1e3)), min_size=1))
def test_rows_have_a_dot_for_every_number(
    values: dict[str, tuple[float | None, float | None]],
) -> None:
    drawn = dot_plot(values, x_label="F1", title="a title")
    numbers = [v for v, _ in values.values() if v is not None and math.isfinite(v)]
    if not numbers:
        assert drawn == ""
        return
    tree, dots = parsed(drawn)
    assert len(dots) == len(numbers)
    assert len([t for t in tree.iter("text") if t.attrib.get("class") == "name"]) == len(values)
    for line in tree.iter("line"):
        assert 0 <= float(line.attrib["x1"]) <= float(line.attrib["x2"]) + 0.01 <= 680.01


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
@example([0.0, 3e-05, -7.75180355863555e-174])  # a step of 5e-06 is a little less
@example([0.0, -1e-13])
@example([999999999.6999999, 1000000000.0])
@example([0.0, 0.3])
def test_an_axis_encloses_all_and_is_short(values: list[float]) -> None:
    ticks = axis_ticks(values)
    slack = 1e-9 * (max(values) - min(values))
    assert ticks[0] <= min(values) + slack
    assert max(values) <= ticks[-1] + slack
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))


def test_an_axis_shows_differences_unless_it_begins_at_zero() -> None:
    drawn = [
        category_plot({"F1": [77.1, 77.4]}, ["1", "2"], x_label="", title="", from_zero=z)
        for z in (False, True)
    ]
    heights = [[y for _, y in parsed(one)[1]] for one in drawn]
    assert heights[0][0] - heights[0][1] > 10 * (heights[1][0] - heights[1][1]) > 0


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
        st.lists(st.tuples(REALS, REALS), max_size=5),
        max_size=9,
    )
)
def test_a_drawing_is_well_formed_and_stays_inside(
    series: dict[str, list[tuple[float, float]]],
) -> None:
    drawn = line_plot(series, x_label="step & <epoch>", title="a title")
    numbers = [p for points in series.values() for p in points if all(map(math.isfinite, p))]
    if not numbers:
        assert drawn == ""
        return
    _, dots = parsed(drawn)
    assert len(dots) == len(numbers)


def test_higher_is_up() -> None:
    tree = ET.fromstring(line_plot({"F1": [(1, 10.0), (2, 80.0)]}, x_label="epoch", title="F1"))  # noqa: S314
    low, high = tree.iter("circle")

    assert float(low.attrib["cy"]) > float(high.attrib["cy"])
    assert float(low.attrib["cx"]) < float(high.attrib["cx"])


def test_long_lines_have_no_dots() -> None:
    drawn = line_plot({"loss": [(x, 1.0) for x in range(61)]}, x_label="step", title="loss")
    assert parsed(drawn)[1] == []
    assert "polyline" in drawn
