"""How far two values of a query are apart: norms by numpy, shift sets by brute force over mixtures."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BlockShifts, BoxShifts, Grid, UtilityRange
from ledgerwood.verification.sensitivity.distances import plain_gap, shift_gap, value_of

NAN, INF = math.nan, math.inf
NORMS = {
    "l1": lambda d: np.abs(d).sum(),
    "l2": lambda d: np.linalg.norm(d),
    "linf": lambda d: np.abs(d).max(),
    "range": lambda d: d.max() - d.min(),
}


def gap(first, second, *, claimed=1.0, norm="l2", rows=5, tolerance=1e-9):
    return plain_gap(value_of(first), value_of(second), claimed=claimed, norm=norm, rows=rows, tolerance=tolerance)


@given(
    values=st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=6),
    norm=st.sampled_from(sorted(NORMS)),
    claimed=st.floats(1e-3, 1e3),
)
def test_the_distance_is_numpys_norm(values, norm, claimed):
    first, second = np.array(values).T
    found = gap(first, second, norm=norm, claimed=claimed)
    expected = float(NORMS[norm](second - first))
    assert found.distance == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert found.ratio == pytest.approx(expected / claimed, rel=1e-12, abs=1e-300)
    scale = max(np.abs(first).max(), np.abs(second).max())
    assert found.refuted or expected <= claimed * (1 + 1e-8) + 1e-12 * scale
    assert not found.refuted or expected > claimed


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (1.0, NAN, INF),
        (NAN, NAN, 0.0),
        (INF, INF, 0.0),
        (INF, -INF, INF),
        ([1.0, INF], [1.0, 2.0], INF),
        ([NAN, 1.0], [NAN, 1.5], 0.5),
        (1e308, -1e308, INF),
        ([1e200, 0.0], [0.0, 1e200], math.sqrt(2) * 1e200),
        ([1.0], [1.0, 0.0], INF),
        (np.zeros((2, 1)), np.zeros((1, 2)), INF),
        ({"a": 1}, {"a": 1, "b": 0}, INF),
        ({"a": 1, "b": 5}, {"b": 5, "a": 3}, 2.0),
        (([1, 2], 0.5), ([1, 2], 1.5), 1.0),
        ([[1], [1, 2]], [[1], [1, 4]], 2.0),
        (["u", "v"], ["u", "w"], INF),
        (np.array([250], np.uint8), np.array([5], np.uint8), 245.0),
        (2**63 + 1, 2**63, 1.0),
        (True, False, 1.0),
        (1 + 1j, 1 - 1j, 2.0),
        ([], [], 0.0),
        (np.float32(1.0), np.float64(2.0), 1.0),
    ],
)
def test_what_is_no_plain_number_is_told_apart(first, second, distance):
    for one, other in ((first, second), (second, first)):
        found = gap(one, other, claimed=0.25)
        assert found.distance == pytest.approx(distance)
        assert found.refuted == (distance > 0)


def test_nothing_claimed_is_nothing_allowed():
    assert gap(1.0, 1.0 + 1e-3, claimed=0.0).ratio == INF
    assert gap(1.0, 1.0, claimed=0.0).ratio == 0.0
    assert not gap(1.0, 1.0 + 2**-52, claimed=0.0).refuted  # rounding
    assert gap(1, 2, claimed=0.0).refuted


def test_objects_are_no_values():
    with pytest.raises(InvalidParameter, match=r"the query returned \['object'\]"):
        value_of(object())


# --------------------------------------------------------------------------------------------------- of shift sets

GRID = Grid(exponents=(-2, 0))


def held(rows, shifts, factor):
    """Whether `factor` times the set holds the shift, by trying every mixture of two boxes on a fine net."""
    columns = np.abs(np.array(rows, float)) * np.array(GRID.steps)
    sums, squares = columns.sum(axis=0), (columns**2).sum(axis=0)
    net = np.linspace(0.0, 1.0, 2001)[:, None]
    fits = []
    for boxes, power, wanted in ((shifts.l1_boxes, 1, sums), (shifts.l2_boxes, 2, squares)):
        ends = [(factor * np.array(box)) ** power for box in boxes]
        fits.append(any(np.any(np.all(net * a + (1 - net) * b >= wanted, axis=1)) for a in ends for b in ends))
    return all(fits)


@pytest.mark.slow  # many replays and searches
@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=2),
    boxes=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=2),
    moved=st.booleans(),
)
def test_the_least_factor_is_that_of_a_search_over_mixtures(rows, boxes, moved):
    boxes = tuple(tuple(map(float, box)) for box in boxes)
    shifts = BoxShifts.moved(boxes=boxes) if moved else BoxShifts(boxes=boxes)
    first = np.array([[2**62, 5], [0, -(2**63)]], np.int64)
    second = first.copy()
    for place, row in enumerate(rows):
        second[place] += np.array(row, np.int64)  # one of them wraps around
    found = shift_gap(first, second, grid=GRID, shifts=shifts)
    if found.ratio in (0.0, INF):
        assert held(rows, shifts, 1e-9) if found.ratio == 0.0 else not held(rows, shifts, 1e9)
        return
    assert held(rows, shifts, found.ratio * 1.002)  # the net's mesh
    assert not held(rows, shifts, found.ratio * 0.998)
    assert found.refuted == (Fraction(found.ratio) > 1) or found.ratio == pytest.approx(1.0)


def test_balls_have_two_radii():
    first, second = np.zeros((2, 2), np.int64), np.array([[12, 4], [0, 0]])  # (3, 4) in units
    assert shift_gap(first, second, grid=GRID, shifts=BallShifts(radius=5.0)).ratio == 1.0
    assert not shift_gap(first, second, grid=GRID, shifts=BallShifts(radius=5.0)).refuted
    assert shift_gap(first, second, grid=GRID, shifts=BallShifts(radius=2.5)).ratio == 2.0
    both = np.array([[12, 4], [12, 4]])
    assert shift_gap(first, both, grid=GRID, shifts=BallShifts(radius=5 * math.sqrt(2) + 1e-9)).ratio > 1.41
    wide = BallShifts(radius=5 * math.sqrt(2) + 1e-9, l1_radius=10.0)
    assert not shift_gap(first, both, grid=GRID, shifts=wide).refuted
    assert shift_gap(first, np.zeros((1, 2), np.int64), grid=GRID, shifts=wide).ratio == INF


def test_blocks_grow_until_they_hold_the_norm_of_each():
    grid, nothing = Grid(exponents=(0, -2, -2)), np.zeros((2, 3), np.int64)
    shifts = BlockShifts(norms=BoxShifts(boxes=((1.0, 5.0),)), sizes=(1, 2))
    for moved, ratio in (
        ((1, 12, 16), 1.0),
        ((0, 12, 16), 1.0),
        ((0, 24, 32), 2.0),
        ((3, 12, 16), 3.0),
        ((1, 0, 10), 1),
    ):
        found = shift_gap(nothing, np.array([moved, (0, 0, 0)]), grid=grid, shifts=shifts)
        assert (found.ratio, found.refuted) == (ratio, ratio > 1)
    assert shift_gap(nothing, np.array([(0, 12, 17), (0, 0, 0)]), grid=grid, shifts=shifts).refuted
    # Two rows: lengths add up for the one norm, squares for the other.
    two = np.array([(1, 12, 16), (-1, 16, -12)])
    assert shift_gap(nothing, two, grid=grid, shifts=shifts).ratio == 2.0
    moving = BlockShifts(norms=BoxShifts.moved(boxes=((1.0, 5.0),)), sizes=(1, 2))
    assert not shift_gap(nothing, two, grid=grid, shifts=moving).refuted
    assert shift_gap(nothing, two, grid=grid, shifts=moving).ratio == 1.0
    within = BlockShifts(norms=BoxShifts(boxes=((0.0, 5.0),)), sizes=(1, 2))
    assert shift_gap(nothing, two, grid=grid, shifts=within).ratio == INF


def test_utilities_move_apart_node_by_node():
    first = np.zeros((2, 3), np.int64)
    second = np.array([[1, -2, 0], [4, 4, 4]])
    whole = Grid(exponents=(0,))
    found = shift_gap(first, second, grid=whole, shifts=UtilityRange(range=3.0))
    assert (found.ratio, found.refuted) == (1.0, False)
    found = shift_gap(first, second, grid=whole, shifts=UtilityRange(range=1.5))
    assert (found.ratio, found.refuted) == (2.0, True)
    assert shift_gap(first, second[:1], grid=whole, shifts=UtilityRange(range=3.0)).ratio == INF
