"""Counts of leaves and of cells: plain Python's, between all neighbours within the stated norms, and paid for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema, routing
from ledgerwood.accounting.events import GaussianEvent, LaplaceEvent
from ledgerwood.curator import CellCounts, Curator, LeafCounts, LeafMoments, Table
from ledgerwood.curator.kernels import histograms as count_kernels
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import (
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SeededRandom,
)
from ledgerwood.threads import threads

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERYONE = np.empty(0, dtype=np.bool_)
SCHEMA = Schema(
    features=(Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y")), Numeric("c", 0.0, 1.0)),
    target=Numeric("t", -1.0, 1.0),
)
BINS = 3
TESTS = SplitTests.every(SCHEMA.cells(BINS))
# A row: the cell of "a" (3: missing), of "b" (2: a category that is not declared), of "c", and the label.
ROWS = st.tuples(
    st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from((-1.0, 0.0, 1.0, 1e308, math.nan))
)


def table_of(rows, dtype=np.uint8):
    cells = np.array([row[:3] for row in rows], dtype=dtype).reshape(-1, 3).T
    return Table(schema=SCHEMA, cells=np.ascontiguousarray(cells), targets=np.array([row[3] for row in rows], float))


@st.composite
def structures(draw):
    tree = TreeStructure.root()
    for level in range(draw(st.integers(0, 3))):
        places = draw(st.lists(st.integers(-1, len(TESTS) - 1), min_size=2**level, max_size=2**level))
        tree = tree.deeper(TESTS.taken(np.array(places)))
    return tree


LEAVES = structures().map(LeafCounts().of)
CELLS = st.builds(
    CellCounts,
    features=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True).map(tuple),
    cells=st.integers(1, 6),
)


def by_hand(query, rows, sampled=EVERYONE):
    drawn = [row for i, row in enumerate(rows) if not len(sampled) or sampled[i]]
    if isinstance(query, CellCounts):
        return [[sum(row[j] == cell for row in drawn)] for j in query.features for cell in range(query.cells)]
    leaves = query.structure.route(np.array([row[:3] for row in drawn], np.uint8).reshape(-1, 3).T).tolist()
    return [[leaves.count(leaf)] for leaf in range(query.structure.n_leaves)]


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=100, deadline=None, derandomize=True)
@given(query=LEAVES | CELLS, rows=st.lists(ROWS, max_size=9), data=st.data())
def test_the_counts_are_what_plain_python_finds(query, rows, data):
    coins = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    for sampled in (EVERYONE, np.array(coins, np.bool_), np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)):
        for dtype in (np.uint8, np.uint16):
            found = table_of(rows, dtype).statistic(query, sampled)
            assert found.dtype == np.int64
            assert found.tolist() == by_hand(query, rows, sampled)


def require_within(shift, sensitivity):
    """Exactly: the L1 and the L2 norm over all counts, at some noise."""
    for scale in (1.0, 0.7, 1e-3):
        assert sum(abs(d) for d in shift) / Fraction(scale) <= Fraction(sensitivity.l1((scale,)))
        assert sum(d * d for d in shift) / Fraction(scale) ** 2 <= Fraction(sensitivity.l2((scale,))) ** 2


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=150, deadline=None, derandomize=True)
@given(query=LEAVES | CELLS, rows=st.lists(ROWS, min_size=1, max_size=7), data=st.data())
def test_neighbours_differ_by_no_more_than_is_stated(query, rows, data):
    place = data.draw(st.integers(0, len(rows)))
    row = data.draw(ROWS | st.sampled_from(rows))  # a duplicate of another row, too
    coins = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    before, after = table_of(rows), table_of([*rows[:place], row, *rows[place:]])
    for without, with_it in ((EVERYONE, EVERYONE), (coins, np.insert(coins, place, True))):
        shift = (after.statistic(query, with_it) - before.statistic(query, without)).ravel().tolist()
        assert set(shift) <= {0, 1}
        for adjacency in (A, Z):
            require_within(shift, query.sensitivity(adjacency))
    other = data.draw(st.integers(0, len(rows) - 1))
    replaced = table_of([*rows[:other], row, *rows[other + 1 :]])
    for sampled in (EVERYONE, coins):
        shift = (replaced.statistic(query, sampled) - before.statistic(query, sampled)).ravel().tolist()
        assert set(shift) <= {-1, 0, 1}
        require_within(shift, query.sensitivity(R))


def test_the_norms_are_attained_by_a_row_that_is_counted_everywhere():
    query = CellCounts(features=(2, 0), cells=3)
    empty, one, other = ([], [(1, 0, 2, 0.5)], [(0, 0, 1, 0.5)])
    counts = [table_of(rows).statistic(query, EVERYONE).ravel() for rows in (empty, one, other)]
    assert counts[1].tolist() == [0, 0, 1, 0, 1, 0]
    added, replaced = (np.abs(counts[1] - counts[i]) for i in (0, 2))
    assert added.sum() == query.sensitivity(A).l1((1.0,)) == 2.0
    assert query.sensitivity(A).l2((1.0,)) == pytest.approx(math.sqrt((added**2).sum()), rel=1e-15)
    assert replaced.sum() == query.sensitivity(R).l1((1.0,)) == 4.0
    assert query.sensitivity(R).l2((1.0,)) == 2.0 == math.sqrt((replaced**2).sum())


def test_a_row_counts_in_its_leaf_whatever_its_gradient():
    tree = TreeStructure.root().deeper(TESTS.taken(np.array([0])))
    rows = [(0, 0, 0, math.nan), (0, 0, 0, 1.0), (2, 0, 0, -1.0), (3, 0, 0, 0.0)]
    table, start = table_of(rows), Ensemble(initial_score=0.0)
    moments = LeafMoments(loss="squared", clip=0.5, large_gradients="drop").of(tree, start)
    assert table.statistic(LeafCounts().of(tree), EVERYONE).tolist() == [[2], [2]]
    assert table.statistic(moments, EVERYONE)[:, 0].tolist() == [0, 2**20]


def test_the_leaves_of_counted_rows_are_those_of_the_tree():
    """The shortcut of a tree that was routed last, after a count in place of a sum."""
    tree = TreeStructure.root().deeper(TESTS.taken(np.array([1])))
    grown = Ensemble(initial_score=0.0).extended(Tree(structure=tree, values=np.array([0.25, -0.5])))
    rows = [(0, 0, 0, 0.0), (2, 1, 0, 0.0), (3, 0, 1, 0.0)]
    query = LeafMoments(loss="squared", clip=1.0).of(TreeStructure.root(), grown)
    table = table_of(rows)
    for sampled in (EVERYONE, np.array([True, False, False])):
        table.statistic(LeafCounts().of(tree), sampled)
        np.testing.assert_array_equal(table.statistic(query, EVERYONE), table_of(rows).statistic(query, EVERYONE))


def test_a_count_that_was_interrupted_leaves_no_tree_routed(monkeypatch):
    tree = TreeStructure.root().deeper(TESTS.taken(np.array([1])))
    grown = Ensemble(initial_score=0.0).extended(Tree(structure=tree, values=np.array([0.25, -0.5])))
    query = LeafMoments(loss="squared", clip=1.0).of(TreeStructure.root(), grown)
    table = table_of([(0, 0, 0, 0.0), (2, 1, 0, 0.0)])
    table.statistic(LeafCounts().of(tree), EVERYONE)

    def interrupted(*arguments):
        arguments[-2][:] = 1  # some leaves are written already
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(count_kernels, "leaf_counts", interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.statistic(LeafCounts().of(TreeStructure.root()), EVERYONE)
    assert table.statistic(query, EVERYONE)[0, 1] == (0.25 - 0.5) * 2**20


def test_one_thread_and_many_count_alike(monkeypatch):
    generator = np.random.default_rng(3)
    n = 40_001
    cells = generator.integers(0, 4, (3, n)).astype(np.uint8)
    tree = TreeStructure.root().deeper(TESTS.taken(np.array([1]))).deeper(TESTS.taken(np.array([4, 7])))
    queries = (LeafCounts().of(tree), CellCounts(features=(2, 0, 1), cells=3))
    masks = (EVERYONE, generator.random(n) < 0.3)
    found = []
    for rows in (0, 10**9):
        monkeypatch.setattr(routing, "THREADED_ROWS", rows)
        table = Table(schema=SCHEMA, cells=cells, targets=np.zeros(n))
        with threads(3):
            found.append([table.statistic(query, mask) for query in queries for mask in masks])
    for threaded, alone in zip(*found, strict=True):
        np.testing.assert_array_equal(threaded, alone)
    leaves = tree.route(cells)
    for mask, of_leaves, of_cells in zip((slice(None), masks[1]), found[0][:2], found[0][2:], strict=True):
        assert of_leaves.ravel().tolist() == np.bincount(leaves[mask], minlength=4).tolist()
        counted = [np.bincount(cells[j, mask], minlength=4)[:3].tolist() for j in (2, 0, 1)]
        assert of_cells.reshape(3, 3).tolist() == counted


# ---- paid for ----


def curator_of(event, rows):
    ledger = Ledger(Budget(epsilon=100.0, delta=1e-5, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
    return Curator(table_of(rows), ledger.grant(event, purpose="test"), SeededRandom(1))


@pytest.mark.parametrize(("adjacency", "moving"), [(A, 3), (Z, 3), (R, 6)])
def test_the_price_of_several_features_is_that_of_all_that_moves(adjacency, moving):
    query = CellCounts(features=(0, 1, 2), cells=4)
    rows = [(0, 0, 0, 0.0)] * 5
    laplace = LaplaceMechanism(scales=(1.5 * moving,))
    event = laplace.event(query.sensitivity(adjacency), adjacency)
    assert isinstance(event, LaplaceEvent)
    assert 1.5 * (1 - 1e-15) <= event.noise_multiplier <= 1.5
    gaussian = GaussianMechanism(stddev=2.0)
    event = gaussian.event(query.sensitivity(adjacency), adjacency)
    assert isinstance(event, GaussianEvent)
    assert Fraction(event.noise_multiplier) ** 2 * moving <= 4
    assert event.noise_multiplier == pytest.approx(2.0 / math.sqrt(moving), rel=1e-15)
    elliptical = EllipticalGaussianMechanism(stddevs=(2.0,)).event(query.sensitivity(adjacency), adjacency)
    assert elliptical.mu() >= math.sqrt(moving) / 2.0
    # Integer noise prices a single number by its own law, and these by what adds up.
    discrete = DiscreteLaplaceMechanism(scale=float(2 * moving))
    assert discrete.event(query.sensitivity(adjacency), adjacency).epsilon == pytest.approx(0.5, rel=1e-12)
    for mechanism in (laplace, gaussian, discrete):
        paid = mechanism.event(query.sensitivity(adjacency), adjacency)
        with curator_of(paid, rows).open(paid, purpose="sketch") as round_:
            release = round_.release(query, mechanism, purpose="cells")
        assert release.value.shape == (12, 1)
        assert release.grid.exponents == (0,)


def test_a_feature_that_is_not_there_is_refused_before_the_draw_is_used():
    mechanism = LaplaceMechanism(scales=(1.0,))
    good, bad = CellCounts(features=(0,), cells=3), CellCounts(features=(3,), cells=3)
    event = mechanism.event(good.sensitivity(A), A)
    with curator_of(event, [(0, 0, 0, 0.0)]).open(event, purpose="sketch") as round_:
        with pytest.raises(RoundViolation, match=r"features outside 0\.\.2"):
            round_.release(bad, mechanism, purpose="cells")
        assert round_.release(good, mechanism, purpose="cells").value.shape == (3, 1)
    with pytest.raises(RoundViolation, match=r"features outside 0\.\.2"):
        table_of([]).statistic(bad, EVERYONE)


def test_a_foreign_tree_is_not_counted():
    class Odd(TreeStructure):
        __slots__ = ()

    root = TreeStructure.root()
    odd = Odd(feature=root.feature, split=root.split, equals=root.equals)
    far = TreeStructure(feature=np.array([3], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))
    for structure in (odd, far):
        with pytest.raises(RoundViolation):
            table_of([(0, 0, 0, 0.0)]).statistic(LeafCounts().of(structure), EVERYONE)


@pytest.mark.parametrize(
    ("features", "cells", "match"),
    [
        ((), 3, "features=.* must be at least one"),
        (3, 3, "features=3 must be a sequence"),
        ((0, 0), 3, "each named once"),
        ((-1,), 3, "features=-1 must be a whole number >= 0"),
        ((0.5,), 3, "features=0.5"),
        ((True,), 3, "features=True"),
        ((0,), 0, "cells=0 must be a whole number >= 1"),
        ((0,), 2**16 + 1, "cells=65537 must be at most 65536"),
        (tuple(range(257)), 2**16, "len.features. . cells=16842752 must be at most 16777216"),
    ],
)
def test_what_cannot_be_counted_is_refused(features, cells, match):
    with pytest.raises(InvalidParameter, match=match):
        CellCounts(features=features, cells=cells)


def test_features_of_any_integer_type_are_kept_as_plain_ones():
    query = CellCounts(features=list(np.arange(2)), cells=np.int32(4))
    assert query == CellCounts(features=(0, 1), cells=4)
    assert all(type(number) is int for number in (*query.features, query.cells))


def test_a_table_without_rows_counts_none():
    for query in (CellCounts(features=(0, 2), cells=2), LeafCounts().of(TreeStructure.root())):
        assert not table_of([]).statistic(query, EVERYONE).any()


def test_counts_that_are_kept_are_of_the_same_rows_and_the_caller_s_own():
    rows = [(0, 1, 2, 0.5), (1, 0, 2, 0.5), (1, 1, 0, 0.5)]
    table, some = table_of(rows), np.array([True, False, True])
    one, other = CellCounts(features=(0, 2), cells=3), CellCounts(features=(0,), cells=3)
    wanted = {
        (query, tuple(mask)): table_of(rows).statistic(query, mask).tolist()
        for query in (one, other)
        for mask in (EVERYONE, some, ~some)
    }
    assert len({str(each) for each in wanted.values()}) == 6
    for query, mask in ((one, EVERYONE), (one, EVERYONE), (one, some), (one, ~some), (other, ~some), (other, EVERYONE)):
        found = table.statistic(query, mask)
        assert found.tolist() == wanted[query, tuple(mask)]
        found += 1  # changes nothing that is kept
