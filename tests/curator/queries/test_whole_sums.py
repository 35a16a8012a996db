"""Sums in whole units: plain Python's, no longer than stated for any neighbour, and refused where units do not hold."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Numeric, Schema
from ledgerwood.curator import LeafCurvatures, LeafMoments, LeafRatios, Table, WholeSums
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
TREE = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
EVERYONE = np.empty(0, dtype=np.bool_)
SCHEMA = Schema(features=(Numeric("x", 0.0, 4.0),), target=Numeric("y", -1.0, 1.0))


def table(rows):
    """Of rows (cell, target)."""
    cells = np.array([[cell for cell, _ in rows]], np.uint8).reshape(1, -1)
    return Table(schema=SCHEMA, cells=cells, targets=np.array([target for _, target in rows], dtype=np.float64))


def curvatures(score=0.0, clip=1.0, scale=3.33):
    return LeafCurvatures(clip=clip, curvature_scale=scale).of(TREE, Ensemble(initial_score=score))


def moments(score=0.0, clip=0.5):
    return LeafMoments(loss="squared", clip=clip).of(TREE, Ensemble(initial_score=score))


def whole(leaf, bits):
    return WholeSums(leaf=leaf.statistic, bits=bits).of(leaf.structure, leaf.ensemble)


leaves = st.one_of(
    st.builds(curvatures, st.floats(-30, 30), st.floats(0.1, 1.0), st.floats(0.1, 3.33)),
    st.builds(moments, st.floats(-2, 2), st.floats(0.1, 2.0)),
)
row = st.tuples(st.integers(0, 3), st.sampled_from([-1.0, 1.0]))
rows = st.lists(row, min_size=1, max_size=8)


def by_hand(leaf, bits, cell, target):
    units, score, leaf = 2.0**bits, leaf.ensemble.initial_score, leaf.statistic
    if isinstance(leaf, LeafMoments):
        gradient = min(max(score - target, -leaf.clip), leaf.clip)
        first = 1.0
    else:
        gradient = -target / (1.0 + math.exp(target * score))
        size = abs(gradient)
        first = leaf.curvature_scale * size * (1.0 - size)
        gradient = min(max(gradient, -leaf.clip), leaf.clip)
    return np.array([math.trunc(first * units), math.trunc(gradient * units)])


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=200, deadline=None, derandomize=True)
@given(leaves, st.integers(4, 20), rows)
def test_sums_are_those_of_truncated_contributions(leaf, bits, data):
    found = table(data).reader(whole(leaf, bits))(EVERYONE)
    wanted = np.zeros((2, 2), dtype=np.int64)
    for cell, target in data:
        wanted[0 if cell < 2 else 1] += by_hand(leaf, bits, cell, target)
    assert np.abs(found - wanted).max() <= 2 * len(data)  # the last bits of exponentials, next to a unit's end


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=300, deadline=None, derandomize=True)
@given(leaves, st.integers(4, 20), rows, row, row)
def test_a_row_moves_whole_sums_by_no_more_than_stated(leaf, bits, data, one, other):
    query = whole(leaf, bits)
    without = table(data).reader(query)(EVERYONE)
    first, second = (table([*data, added]).reader(query)(EVERYONE) for added in (one, other))
    for adjacency, shift in ((A, first - without), (Z, without - first), (R, first - second)):
        norm = query.sensitivity(adjacency).l2((1.0, 1.0))
        assert sum(int(d) ** 2 for d in shift.ravel()) <= Fraction(norm) ** 2


@pytest.mark.parametrize("leaf", [curvatures(), moments()], ids=["curvatures", "moments"])
def test_twenty_bits_are_the_steps_of_the_leaf_query_itself(leaf):
    data = [(0, 1.0), (1, -1.0), (3, 1.0), (2, -1.0)]
    fine = table(data).reader(leaf)(EVERYONE)
    assert (table(data).reader(whole(leaf, 20))(EVERYONE) == fine).all()


def test_the_bound_is_that_of_the_leaf_query_times_the_units_and_attained():
    for adjacency in (A, Z, R):
        for leaf in (curvatures(), moments()):
            wide = whole(leaf, 7).sensitivity(adjacency)
            assert wide.l2((1.0, 1.0)) == 128.0 * leaf.sensitivity(adjacency).l2((1.0, 1.0))
    far = curvatures(score=800.0)
    moved = table([(0, -1.0)]).reader(whole(far, 5))(EVERYONE)[0]
    assert moved.tolist() == [0, 32]


def test_what_has_no_whole_units_is_refused():
    ratios = LeafRatios(loss="squared", clip=1.0, damping=1.0)
    for arguments, match in (
        ({"leaf": ratios, "bits": 8}, "LeafMoments or LeafCurvatures"),
        ({"leaf": moments().statistic, "bits": 21}, "at most 20"),
        ({"leaf": moments().statistic, "bits": -1}, "bits"),
        ({"leaf": moments().statistic, "bits": 1.5}, "bits"),
        ({"leaf": moments(clip=0.01).statistic, "bits": 5}, "at least a unit"),
    ):
        with pytest.raises(InvalidParameter, match=match):
            WholeSums(**arguments)
    weighed = Table(
        schema=SCHEMA, cells=np.zeros((1, 1), np.uint8), targets=np.zeros(1), weights=np.array([5], np.int32)
    )
    with pytest.raises(RoundViolation, match="do not support weights"):
        weighed.reader(whole(moments(), 8))
    far = TreeStructure(feature=np.array([1], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
    beyond = LeafMoments(loss="squared", clip=1.0).of(far, Ensemble(initial_score=0.0))
    with pytest.raises(RoundViolation, match="features outside"):
        table([(0, 1.0)]).reader(whole(beyond, 8))
