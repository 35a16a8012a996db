"""Figures: every mark lies within its figure, whatever the numbers, and says in words what it shows."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.pages.svg import HEIGHT, WIDTH, Axis, Band, Bars, PlotCurve, Rung, ladder, padded, plot, swatch

ANY = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(-1e12, 1e12)
PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


def points(figure):
    return [
        (float(x), float(y)) for path in figure.iter("path") for x, y in PAIR.findall(path.get("d"))
    ]  # fmt: skip


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=20), FINITE, st.floats(1e-3, 1e12), st.booleans())
def test_curves_stay_within_the_figure(pairs, low, span, steps):
    axis = Axis(label="x", low=low, high=low + span * max(1.0, abs(low)))
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    band = Band(lower=(xs, ys), upper=(ys, xs), role="found")
    figure = plot("f", "t", "d", axis, axis, [band, PlotCurve(xs=xs, ys=ys, role="found", steps=steps)])
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points(figure))


@given(FINITE, st.floats(1e-9, 1e12))
def test_ticks_are_few_round_and_within(low, span):
    axis = Axis(label="x", low=low, high=low + span * max(1.0, abs(low)))
    ticks = axis.ticks()
    slack = 1e-6 * (axis.high - axis.low)
    assert 2 <= len(ticks) <= 7
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("low", "high", "whole", "ticks"),
    [
        (0.0, 1.0, False, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 3.0, True, [0.0, 1.0, 2.0, 3.0]),
        (-3.0, 3.2, False, [-2.0, 0.0, 2.0]),
    ],
)
def test_ticks_of_usual_axes(low, high, whole, ticks):
    assert Axis(label="x", low=low, high=high, whole=whole).ticks() == ticks


def test_a_curve_is_drawn_to_scale():
    axis = Axis(label="x", low=0.0, high=1.0)
    figure = plot("f", "t", "d", axis, axis, [PlotCurve(xs=(0.0, 0.5, 1.0), ys=(0.0, 1.0, 0.25), role="found")])
    (x0, y0), (x1, y1), (x2, y2) = points(figure)
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y2 == pytest.approx(0.25 * (y0 - y1), abs=0.02)
    assert y1 < y0


def test_steps_keep_a_value_until_the_next_point():
    axis = Axis(label="x", low=0.0, high=1.0)
    figure = plot("f", "t", "d", axis, axis, [PlotCurve(xs=(0.0, 1.0), ys=(0.0, 1.0), role="paid", steps=True)])
    (_, y0), (x1, y1), (x2, _) = points(figure)
    assert y0 == y1
    assert x1 == x2


def test_bars_begin_and_end_on_the_ground():
    axis = Axis(label="x", low=0.0, high=1.0)
    found = points(plot("f", "t", "d", axis, axis, [Bars(edges=(0.0, 0.5, 1.0), heights=(1.0, 0.5), role="with")]))
    assert found[0][1] == found[-1][1] == max(y for _, y in found)
    assert len(found) == 6


def test_a_figure_says_what_it_shows():
    axis = Axis(label="epsilon", low=0.0, high=1.0)
    figure = plot("name", "The title", "The <description>", axis, axis, [])
    assert figure.get("role") == "img"
    assert figure.get("aria-labelledby") == "name-title name-description"
    assert [figure.find(tag).text for tag in ("title", "desc")] == ["The title", "The <description>"]
    assert {"name-title", "name-description"} == {figure.find(tag).get("id") for tag in ("title", "desc")}


@pytest.mark.parametrize("claimed", [0.0, 1.0, math.inf])
def test_a_ladder_has_a_rung_for_each_value_and_an_arrow_beyond_the_scale(claimed):
    rungs = [Rung(value=value, name="a", sure=sure, shown="b") for value, sure in ((0.5, True), (math.inf, False))]
    figure = ladder("f", "t", "d", Axis(label="epsilon", low=0.0, high=2.0), rungs, (claimed, "claimed"))
    circles = list(figure.iter("circle"))
    assert [circle.get("class") for circle in circles] == ["dot", "dot hollow"]
    assert float(circles[1].get("cx")) > float(circles[0].get("cx"))
    assert len(list(figure.iter("polygon"))) == 1
    assert len([line for line in figure.iter("line") if "claimed" in line.get("class")]) == math.isfinite(claimed)
    assert all(float(circle.get("cx")) <= WIDTH for circle in circles)


def test_a_swatch_is_silent():
    assert swatch("found", filled=True).get("aria-hidden") == "true"


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [math.inf, 2.0], [-1.0, 5.0]])
def test_a_padded_range_is_never_empty(values):
    low, high = padded(values)
    assert low < high
    assert all(low < value < high for value in values if math.isfinite(value))
    assert padded(values, floor=0.0)[0] == 0.0
