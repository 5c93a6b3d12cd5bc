from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from hypothesis import example, given
from hypothesis import strategies as st

from spandet.training.curves import _ticks, curves

NUMBERS = st.floats(-1e6, 1e6) | st.just(math.nan)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
        st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5),
        max_size=9,
    )
)
def test_a_drawing_is_well_formed_and_stays_inside(
    series: dict[str, list[tuple[float, float]]],
) -> None:
    drawn = curves(series, across="step & <epoch>", title="a title")
    numbers = [p for points in series.values() for p in points if all(map(math.isfinite, p))]
    if not numbers:
        assert drawn == ""
        return
    tree = ET.fromstring(drawn)  # noqa: S314 (our own)
    dots = list(tree.iter("circle"))
    assert len(dots) == len(numbers)
    for dot in dots:
        assert 0 <= float(dot.attrib["cx"]) <= 680
        assert 0 <= float(dot.attrib["cy"]) <= 260


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
@example([3e-05, -7.75180355863555e-174])  # a step of 5e-06 is a little less
@example([-1e-13])
def test_ticks_are_few_and_enclose(values: list[float]) -> None:
    low, high = min(0.0, *values), max(0.0, *values)
    ticks = _ticks(low, high)

    assert 2 <= len(ticks) <= 8
    slack = 1e-9 * (high - low)
    assert ticks[0] <= low + slack
    assert high - slack <= ticks[-1]


def test_higher_is_up() -> None:
    tree = ET.fromstring(curves({"F1": [(1, 10.0), (2, 80.0)]}, across="epoch", title="F1"))  # noqa: S314
    low, high = tree.iter("circle")

    assert float(low.attrib["cy"]) > float(high.attrib["cy"])
    assert float(low.attrib["cx"]) < float(high.attrib["cx"])
