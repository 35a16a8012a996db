"""Sums by bin, by side, of hessians, scores and labels in whole units: plain Python's, and no longer than stated."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.curator import (
    BinHessians,
    BinSums,
    CandidateBins,
    LabelMoments,
    LeafCurvatures,
    LeafMoments,
    ScoreCounts,
    SideSums,
    Table,
    WholeSums,
    hessian_shifts,
)
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
EVERYONE = np.empty(0, dtype=np.bool_)
FEATURES = (Numeric("a", 0.0, 4.0), Numeric("b", 0.0, 4.0))
NUMBERS = Schema(features=FEATURES, target=Numeric("y", -1.0, 1.0))
CLASSES = Schema(features=FEATURES, target=Categorical("y", ("no", "yes")))
SPLIT = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
SCORES = (-0.75, 0.5)  # of rows whose cell of "a" is below 2, and of the others
ENSEMBLE = Ensemble(initial_score=0.0).extended(Tree(structure=SPLIT, values=np.array(SCORES)))
BINS = CandidateBins.of(NUMBERS.cells(4), [np.array([1, 3]), np.array([2])])
OFFSETS, BORDERS = (0, 3), ([1, 3], [2])

row = st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(-1, 1))
rows = st.lists(row, min_size=1, max_size=12)


def table(data, *, classes=False):
    """Of rows (cell, cell, target); of classes the target is its sign."""
    cells = np.array([[each[place] for each in data] for place in (0, 1)], np.uint8)
    targets = np.array([target_of(each, classes=classes) for each in data])
    return Table(schema=CLASSES if classes else NUMBERS, cells=cells, targets=targets, bins=4)


def target_of(each, *, classes):
    return (1.0 if each[2] > 0 else -1.0) if classes else each[2]


def score_of(each):
    return SCORES[each[0] >= 2]


def bins_of(each):
    return [
        offset + sum(cell >= border for border in borders)
        for offset, borders, cell in zip(OFFSETS, BORDERS, each, strict=False)
    ]


def moments(each, clip, bits, weight_bits):
    gradient = min(max(score_of(each) - each[2], -clip), clip)
    return np.array([2**weight_bits, math.trunc(gradient * 2.0**bits)])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(rows, st.sampled_from([0.25, 0.5, 1.0]), st.integers(2, 20), st.integers(0, 2))
def test_sums_by_bin_and_side_are_those_of_whole_contributions(data, clip, bits, coarser):
    statistic = WholeSums(leaf=LeafMoments(loss="squared", clip=clip), bits=bits, weight_bits=bits - coarser)
    leaf = statistic.of(SPLIT, ENSEMBLE)
    by_leaf, by_bin = np.zeros((2, 2), np.int64), np.zeros((2, BINS.total, 2), np.int64)
    left = np.zeros((2, 2, 2), np.int64)
    for each in data:
        own, node = moments(each, clip, bits, bits - coarser), int(each[0] >= 2)
        by_leaf[node] += own
        for place in bins_of(each):
            by_bin[node, place] += own
        for place, border in enumerate((1, 3)):
            left[node, place] += own if each[place] < border else 0
    whole = table(data)
    np.testing.assert_array_equal(whole.reader(leaf)(EVERYONE), by_leaf)
    np.testing.assert_array_equal(whole.reader(BinSums(leaf=leaf, bins=BINS))(EVERYONE), by_bin.reshape(-1, 2))
    tests = SplitTests(
        feature=np.array([0, 1, 0, 1], np.int32), split=np.array([1, 3, 1, 3], np.uint16), equals=np.zeros(4, bool)
    )
    np.testing.assert_array_equal(whole.reader(SideSums(leaf=leaf, tests=tests))(EVERYONE), left.reshape(-1, 2))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(rows, st.integers(1, 20))
def test_hessians_scores_and_labels_are_counted_in_whole_units(data, bits):
    whole, units = table(data, classes=True), 2**bits
    hessians, counts = np.zeros((BINS.total, 1), np.int64), np.zeros((2, 2), np.int64)
    for each in data:
        target, score = target_of(each, classes=True), score_of(each)
        size = 1.0 / (1.0 + math.exp(target * score))
        for place in bins_of(each):
            hessians[place] += math.trunc(size * (1.0 - size) * units)
        counts[int(score >= 0.0)] += [units, round(target) * units]
    read = whole.reader(BinHessians(bins=BINS, bits=bits).of(ENSEMBLE))
    np.testing.assert_array_equal(read(EVERYONE), hessians)
    np.testing.assert_array_equal(whole.reader(ScoreCounts(edges=(0.0,), bits=bits).of(ENSEMBLE))(EVERYONE), counts)
    labels = [len(data) * units // 2, math.fsum(math.trunc(each[2] * units) for each in data)]
    np.testing.assert_array_equal(table(data).reader(LabelMoments(bits=bits))(EVERYONE), labels)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(rows, row, row, st.integers(2, 20))
def test_a_row_moves_them_by_no_more_than_stated(data, one, other, bits):
    curved = WholeSums(leaf=LeafCurvatures(clip=0.7), bits=bits).of(SPLIT, ENSEMBLE)
    plain = WholeSums(leaf=LeafMoments(loss="squared", clip=0.5), bits=bits, weight_bits=bits - 1).of(SPLIT, ENSEMBLE)
    for classes, query in (
        (True, BinSums(leaf=curved, bins=BINS)),
        (False, BinSums(leaf=plain, bins=BINS)),
        (True, BinHessians(bins=BINS, bits=bits).of(ENSEMBLE)),
        (True, ScoreCounts(edges=(0.0,), bits=bits).of(ENSEMBLE)),
        (False, LabelMoments(bits=bits)),
    ):
        found = [table([*data, *more], classes=classes).reader(query)(EVERYONE) for more in ([], [one], [other])]
        for adjacency, moved in ((A, found[1] - found[0]), (A, found[0] - found[2]), (R, found[1] - found[2])):
            stated = query.sensitivity(adjacency)
            assert math.sqrt(float((moved.astype(float) ** 2).sum())) <= stated.l2((1.0,) * (stated.columns or 2))


def test_what_has_no_whole_units_is_refused():
    leaf = LeafMoments(loss="squared", clip=0.5)
    for wrong in (
        lambda: BinHessians(bins=BINS, bits=21),
        lambda: ScoreCounts(edges=(0.0,), bits=-1),
        lambda: LabelMoments(bits=0),
        lambda: WholeSums(leaf=leaf, bits=4, weight_bits=5),
        lambda: WholeSums(leaf=LeafCurvatures(clip=1.0), bits=4, weight_bits=3),
    ):
        with pytest.raises(InvalidParameter, match="bits.*binary places"):
            wrong()
    schema = Schema(features=FEATURES, target=Categorical("y", ("no", "yes")), weight_bound=2.0)
    weighed = Table(
        schema=schema, cells=np.zeros((2, 1), np.uint8), targets=np.ones(1), weights=np.array([5], np.int32), bins=4
    )
    whole = WholeSums(leaf=LeafCurvatures(clip=1.0), bits=4).of(SPLIT, ENSEMBLE)
    for query in (
        BinSums(leaf=whole, bins=BINS),
        BinHessians(bins=BINS, bits=4).of(ENSEMBLE),
        ScoreCounts(edges=(0.0,), bits=4).of(ENSEMBLE),
        LabelMoments(bits=4),
    ):
        with pytest.raises(RoundViolation, match="do not support weights"):
            weighed.reader(query)


def test_units_scale_what_a_plan_derives_its_cost_from():
    for adjacency in (A, R):
        fine, whole = hessian_shifts(3, adjacency), hessian_shifts(3, adjacency, bits=8)
        assert whole.l2((1.0,)) == 256.0 * fine.l2((1.0,))
        assert hessian_shifts(2, adjacency, bits=8) == BinHessians(bins=BINS, bits=8).sensitivity(adjacency)
