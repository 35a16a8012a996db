"""Sums by leaf and bin: plain Python's, between all neighbours within the stated norms, and never of a stale state."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema, routing
from ledgerwood.curator import (
    BinCounts,
    BinHessians,
    BinSums,
    CandidateBins,
    Curator,
    LeafCurvatures,
    LeafMoments,
    LeafQuery,
    LeafRatios,
    ScoreQuery,
    SideSums,
    Table,
)
from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.curator.kernels.growing_histograms import BinRows, LevelSums
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import GaussianMechanism, SeededRandom
from ledgerwood.threads import threads

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERYONE = np.empty(0, dtype=np.bool_)
FEATURES = (Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y")), Numeric("c", 0.0, 1.0))
NUMBERS = Schema(features=FEATURES, target=Numeric("t", -1.0, 1.0))
CLASSES = Schema(features=FEATURES, target=Categorical("t", ("k0", "k1", "k2")))
CELLS = NUMBERS.cells(4)
# The last two are a set of categories that goes left, and "y" and what was never declared.
TESTS = SplitTests.every(CELLS)
SETS = SplitTests(
    feature=np.array([1, 1], np.int32),
    split=np.zeros(2, np.uint16),
    equals=np.zeros(2, np.bool_),
    besides=np.array([-2, -3], np.int32),
    left_sets=np.array([[True, False, False], [False, True, True]]),
)
BINS = CandidateBins.of(CELLS, [np.array([1, 3]), np.empty(0, np.int64), np.array([2])])
ALL_BORDERS = CandidateBins.of(CELLS)
SOME = CandidateBins.of(CELLS, None, [2, 0])
STEPS = 2**20
# A row: the cell of "a" (4: missing), of "b" (2: a category that is not declared), of "c", target, class, weight.
ROWS = st.tuples(
    st.integers(0, 4),
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from((-1.0, -0.3, 0.0, 0.7, 1.0, math.nan)),
    st.integers(-1, 2),
    st.sampled_from((0, 1, STEPS // 3, STEPS)),
)


def cells_of(rows, dtype=np.uint8):
    return np.ascontiguousarray(np.array([row[:3] for row in rows], dtype=dtype).reshape(-1, 3).T)


def table_of(rows, *, kind="numbers", weighted=False, dtype=np.uint8):
    weights = np.array([row[5] for row in rows], np.int32) if weighted else np.empty(0, np.int32)
    if kind == "classes":
        codes = np.array([row[4] for row in rows], np.int32)
        return Table(schema=CLASSES, cells=cells_of(rows, dtype), classes=codes, weights=weights)
    targets = np.array([row[3] for row in rows], float)
    return Table(schema=NUMBERS, cells=cells_of(rows, dtype), targets=targets, weights=weights)


@st.composite
def structures(draw, most=3):
    tree = TreeStructure.root()
    for level in range(draw(st.integers(0, most))):
        tests = SETS if draw(st.booleans()) else TESTS
        places = draw(st.lists(st.integers(0, len(tests) - 1), min_size=2**level, max_size=2**level))
        tree = tree.deeper(tests.taken(np.array(places)))
    return tree


STUMP = TreeStructure.root().deeper(TESTS.taken(np.array([2])))
GROWN = Ensemble(initial_score=0.1).extended(Tree(structure=STUMP, values=np.array([0.75, -1.5])))
ENSEMBLES = (Ensemble(initial_score=0.0), GROWN)


@st.composite
def leaves(draw, kind):
    shared = {
        "clip": draw(st.sampled_from((0.25, 1.0, 256.0))),
        "large_gradients": draw(st.sampled_from(("clip", "drop"))),
    }
    place = draw(structures()), draw(st.sampled_from(ENSEMBLES))
    positive = draw(st.integers(0, 2)) if kind == "classes" else None
    if draw(st.booleans()):
        return LeafMoments(loss=draw(st.sampled_from(("squared", "logistic"))), **shared).of(*place, positive=positive)
    return LeafCurvatures(curvature_scale=draw(st.sampled_from((0.5, 3.33))), **shared).of(*place, positive=positive)


@st.composite
def queries(draw, kind):
    bins = draw(st.sampled_from((BINS, ALL_BORDERS, SOME)))
    which = draw(st.integers(0, 3))
    if which == 0:
        return BinCounts(bins=bins)
    if which == 1:
        positive = draw(st.integers(0, 2)) if kind == "classes" else None
        return BinHessians(bins=bins).of(draw(st.sampled_from(ENSEMBLES)), positive=positive)
    leaf = draw(leaves(kind))
    if which == 2:
        return BinSums(leaf=leaf, bins=bins)
    tests, number = draw(st.sampled_from((TESTS, SETS))), draw(st.integers(1, 3)) * leaf.structure.n_leaves
    places = draw(st.lists(st.integers(0, len(tests) - 1), min_size=number, max_size=number))
    return SideSums(leaf=leaf, tests=tests.taken(np.array(places)))


WORLDS = st.sampled_from(("numbers", "classes")).flatmap(
    lambda kind: st.tuples(queries(kind), st.just(kind), st.booleans())
)


# ---- what plain Python finds ----


def hessians(query):
    return isinstance(query, ScoreQuery)


def bins_of(query):
    return query.statistic.bins if hessians(query) else query.bins


def gradient_of(row, query, kind):
    """d loss / d score in floats, and whether the loss is logistic."""
    leaf = query if hessians(query) else query.leaf
    target = row[3] if kind == "numbers" else math.nan if row[4] < 0 else 1.0 if row[4] == leaf.positive else -1.0
    score = leaf.ensemble.scores(cells_of([row]))[0]
    logistic = not isinstance(leaf.statistic, LeafMoments) or leaf.statistic.loss == "logistic"
    return -target / (1.0 + math.exp(target * score)) if logistic else score - target


def weighed(steps, row, weighted):
    return math.trunc(Fraction(steps * row[5], STEPS)) if weighted else steps


def contribution(row, query, kind, weighted):
    """In steps, of the queries with two columns."""
    gradient, leaf = gradient_of(row, query, kind), query.leaf.statistic
    if not math.isfinite(gradient) or (leaf.large_gradients == "drop" and abs(gradient) > leaf.clip):
        return (0, 0)
    first, second = STEPS, math.trunc(max(-leaf.clip, min(leaf.clip, gradient)) * STEPS)
    if isinstance(leaf, LeafCurvatures):
        first = math.trunc(leaf.curvature_scale * (abs(gradient) * (1 - abs(gradient))) * STEPS)
    return weighed(first, row, weighted), weighed(second, row, weighted)


def bin_of(bins, place, cell):
    each, thresholds, ordered = bins.cells[place], bins.thresholds[place].tolist(), int(bins.ordered[place])
    if cell < each.ordered:
        return sum(cell >= t for t in thresholds)
    return ordered + (each.equality.index(cell) if cell in each.equality else len(each.equality))


def goes_left(tests, place, cells):
    cell, beside = cells[tests.feature[place]], -1 if tests.besides is None else int(tests.besides[place])
    if beside < -1:
        return bool(tests.left_sets[-2 - beside, cell])
    return cell == beside or (cell == tests.split[place] if tests.equals[place] else cell < tests.split[place])


def by_hand(query, rows, kind, weighted, sampled):
    columns = 2 if isinstance(query, BinSums | SideSums) else 1
    sums = {}
    for i, row in enumerate(rows):
        if len(sampled) and not sampled[i]:
            continue
        leaf, own = 0, (1,)
        if isinstance(query, BinSums | SideSums):
            leaf = int(query.leaf.structure.route(cells_of([row]))[0])
            own = contribution(row, query, kind, weighted)
        elif hessians(query):
            size = abs(gradient_of(row, query, kind))
            own = (weighed(math.trunc(size * (1 - size) * STEPS) if math.isfinite(size) else 0, row, weighted),)
        if isinstance(query, SideSums):
            f = query.tests_a_leaf
            places = [leaf * f + j for j in range(f) if goes_left(query.tests, leaf * f + j, row)]
        else:
            bins = bins_of(query)
            offsets = bins.offsets.tolist()
            features = enumerate(bins.features.tolist())
            places = [leaf * offsets[-1] + offsets[j] + bin_of(bins, j, row[k]) for j, k in features]
        for place in places:
            sums[place] = [a + b for a, b in zip(sums.get(place, [0] * columns), own, strict=True)]
    if isinstance(query, SideSums):
        size = len(query.tests)
    else:
        size = bins_of(query).total * (query.leaf.structure.n_leaves if isinstance(query, BinSums) else 1)
    return [sums.get(place, [0] * columns) for place in range(size)]


@pytest.mark.slow  # many tables in plain Python
@settings(max_examples=250, deadline=None, derandomize=True)
@given(world=WORLDS, rows=st.lists(ROWS, max_size=9), data=st.data())
def test_the_sums_are_what_plain_python_finds(world, rows, data):
    query, kind, weighted = world
    coins = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    for sampled in (EVERYONE, np.array(coins, np.bool_), np.zeros(len(rows), np.bool_)):
        for dtype in (np.uint8, np.uint16):
            table = table_of(rows, kind=kind, weighted=weighted, dtype=dtype)
            found = table.reader(query)(sampled)
            assert found.dtype == np.int64
            assert found.tolist() == by_hand(query, rows, kind, weighted, sampled)


@pytest.mark.slow  # many tables, each counted by two kernels
@settings(max_examples=60, deadline=None, derandomize=True)
@given(world=WORLDS, rows=st.lists(ROWS, max_size=9))
def test_each_feature_s_histogram_adds_up_to_the_leaf_query(world, rows):
    query, kind, weighted = world
    if isinstance(query, BinSums):
        table = table_of(rows, kind=kind, weighted=weighted)
        leaf, offsets = table.statistic(query.leaf, EVERYONE), query.bins.offsets
        sums = table.statistic(query, EVERYONE).reshape(len(leaf), query.bins.total, 2)
        for start, stop in itertools.pairwise(offsets):
            np.testing.assert_array_equal(sums[:, start:stop].sum(axis=1), leaf)


# ---- neighbours ----


def require_within(shift, query, adjacency):
    """Exactly: the L1 and the L2 norm over all cells, at several noises."""
    unit = [Fraction(2) ** exponent for exponent in query.grid.exponents]
    sensitivity = query.sensitivity(adjacency)
    for scales in ((1.0, 1.0), (0.7, 3.0), (5.0, 1e-3)):
        weights = scales[: len(unit)]
        units = [u / Fraction(s) for u, s in zip(unit, weights, strict=True)]
        l1 = sum(abs(d) * u for row in shift for d, u in zip(row, units, strict=True))
        squared = sum((d * u) ** 2 for row in shift for d, u in zip(row, units, strict=True))
        assert l1 <= Fraction(sensitivity.l1(weights))
        assert squared <= Fraction(sensitivity.l2(weights)) ** 2


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=300, deadline=None, derandomize=True)
@given(world=WORLDS, rows=st.lists(ROWS, min_size=1, max_size=5), data=st.data())
def test_neighbours_differ_by_no_more_than_is_stated(world, rows, data):
    query, kind, weighted = world
    place = data.draw(st.integers(0, len(rows)))
    row = data.draw(ROWS | st.sampled_from(rows))
    other = data.draw(st.integers(0, len(rows) - 1))

    def sums(of):
        return table_of(of, kind=kind, weighted=weighted).statistic(query, EVERYONE)

    before = sums(rows)
    shift = (sums([*rows[:place], row, *rows[place:]]) - before).tolist()
    for adjacency in (A, Z):
        require_within(shift, query, adjacency)
    replaced = (sums([*rows[:other], row, *rows[other + 1 :]]) - before).tolist()
    require_within(replaced, query, R)


EDGES = [(a, b, c, t, k, STEPS) for a in (0, 4) for b, c in ((0, 0), (2, 3)) for t in (-1.0, 1.0) for k in (0, 1)]


@pytest.mark.slow  # all pairs of extreme rows
@pytest.mark.parametrize("clip", [0.25, 1.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", None])
def test_every_pair_of_extreme_rows_is_within_the_norms(loss, clip):
    """The whole of one row against another's, in an empty and in a filled table."""
    ensemble = Ensemble(initial_score=0.0)
    if loss is None:
        leaf = LeafCurvatures(clip=clip).of(STUMP, ensemble)
    else:
        leaf = LeafMoments(loss=loss, clip=clip).of(STUMP, ensemble)
    sides = SideSums(leaf=leaf, tests=TESTS.taken(np.array([0, 4, 8, 1, 5, 8])))
    for query in (BinSums(leaf=leaf, bins=BINS), sides, BinHessians(bins=BINS).of(ensemble)):
        single = [table_of([row]).statistic(query, EVERYONE) for row in EDGES]
        for one in single:
            require_within(one.tolist(), query, A)
            for two in single:
                require_within((one - two).tolist(), query, R)


def test_the_norms_are_attained():
    leaf = LeafMoments(loss="squared", clip=0.5).of(STUMP, ENSEMBLES[0])
    query = BinSums(leaf=leaf, bins=BINS)
    one, same, other = (
        table_of([row]).statistic(query, EVERYONE) / STEPS
        for row in ((0, 0, 0, 1.0, 0, 0), (0, 0, 0, -1.0, 0, 0), (4, 2, 3, 1.0, 0, 0))
    )

    def norms(shift, scales):
        scaled = np.abs(shift) / scales
        return scaled.sum(), math.sqrt((scaled**2).sum())

    for shift, adjacency, scales in (
        (one, A, (1.0, 1.0)),
        (one - other, R, (1.0, 1.0)),
        (one - same, R, (100.0, 1.0)),  # the count is cheap: most moves within a cell
    ):
        l1, l2 = norms(shift, scales)
        sensitivity = query.sensitivity(adjacency)
        if scales == (1.0, 1.0):
            assert sensitivity.l1(scales) == pytest.approx(l1, rel=1e-12)
        assert sensitivity.l2(scales) == pytest.approx(l2, rel=1e-12)
    hessians = BinHessians(bins=BINS).of(ENSEMBLES[0])
    one, other = (
        table_of([row]).statistic(hessians, EVERYONE) / STEPS for row in ((0, 0, 0, 1.0, 0, 0), (4, 2, 3, 1.0, 0, 0))
    )
    assert norms(one, 1.0) == (0.75, pytest.approx(math.sqrt(3) / 4, rel=1e-15))
    assert hessians.sensitivity(A).l1((1.0,)) == 0.75
    assert hessians.sensitivity(A).l2((1.0,)) == pytest.approx(math.sqrt(3) / 4, rel=1e-15)
    assert hessians.sensitivity(R).l1((1.0,)) == norms(one - other, 1.0)[0] == 1.5
    assert hessians.sensitivity(R).l2((1.0,)) == pytest.approx(norms(one - other, 1.0)[1], rel=1e-15)


# ---- what is kept from level to level ----


def random_rows(n, seed=3):
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, top, n) for top in (5, 3, 4)]
    targets = generator.uniform(-1, 1, n)
    classes, weights = generator.integers(0, 3, n), generator.integers(0, STEPS + 1, n)
    return list(zip(*(c.tolist() for c in (*columns, targets, classes, weights)), strict=True))


def deepened(tree, seed):
    places = np.random.default_rng(seed).integers(0, len(TESTS), tree.n_leaves)
    return tree.deeper(TESTS.taken(places))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), weighted=st.booleans())
def test_a_table_never_answers_from_a_state_that_is_not_the_query_s(data, weighted):
    """Any sequence of queries, each beside a table that has answered none."""
    rows = random_rows(40)
    table = table_of(rows, kind="classes", weighted=weighted)
    coins = np.random.default_rng(1).random(40) < 0.6
    tree, query = TreeStructure.root(), None
    for _ in range(data.draw(st.integers(2, 7))):
        tree = data.draw(
            st.sampled_from((tree, STUMP, TreeStructure.root()))
            | st.integers(0, 3).map(lambda seed, tree=tree: deepened(tree, seed) if tree.depth < 4 else tree)
        )
        kept = query is not None and data.draw(st.booleans())
        leaf = query.leaf if kept else data.draw(leaves("classes"))
        bins = query.bins if kept else data.draw(st.sampled_from((BINS, ALL_BORDERS, SOME)))
        query = BinSums(leaf=dataclasses.replace(leaf, structure=tree), bins=bins)
        if data.draw(st.booleans()):
            coins[data.draw(st.integers(0, 39))] ^= True  # in place: it is the same array
        sampled = data.draw(st.sampled_from((EVERYONE, coins)))
        found = table.statistic(query, sampled)
        fresh = table_of(rows, kind="classes", weighted=weighted)
        np.testing.assert_array_equal(found, fresh.statistic(query, sampled))
        found += 1  # the caller's own: what is kept is no part of it
    again = table.statistic(query, sampled)
    np.testing.assert_array_equal(again, fresh.statistic(query, sampled))


CHANGES = {
    "sample": {},
    "bins": {},
    "ensemble": {"ensemble": Ensemble(initial_score=0.5)},
    "clip": {},
    "large_gradients": {},
    "positive": {"positive": 2},
    "loss": {},
    "upper test": {},
    "kind": {},
}
STATISTICS = {
    "clip": {"clip": 0.125},
    "large_gradients": {"large_gradients": "drop"},
    "loss": {"loss": "logistic"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_after_a_change_the_level_is_not_found_from_the_one_above(what):
    rows = random_rows(60)
    first = LeafMoments(loss="squared", clip=0.5).of(STUMP, GROWN, positive=1)
    tree = deepened(TreeStructure.root().deeper(TESTS.taken(np.array([7]))) if what == "upper test" else STUMP, 2)
    second = dataclasses.replace(first, structure=tree, **CHANGES[what])
    if what in STATISTICS:
        second = dataclasses.replace(second, statistic=dataclasses.replace(first.statistic, **STATISTICS[what]))
    if what == "kind":
        second = LeafCurvatures(clip=0.5).of(tree, GROWN, positive=1)
    bins, sampled = (SOME if what == "bins" else BINS), np.arange(60) % 3 > 0 if what == "sample" else EVERYONE
    table, fresh = (table_of(rows, kind="classes") for _ in range(2))
    before = table.statistic(BinSums(leaf=first, bins=BINS), EVERYONE)
    query = BinSums(leaf=second, bins=bins)
    found = table.statistic(query, sampled)
    np.testing.assert_array_equal(found, fresh.statistic(query, sampled))
    assert before.shape != found.shape or not np.array_equal(before, found)


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_sets_that_grow_wider_leave_the_upper_tests_as_they_were():
    rows = random_rows(60)
    above = TreeStructure.root().deeper(SETS.taken(np.array([0])))
    leaf = LeafMoments(loss="squared", clip=0.5).of(above, GROWN)
    wider = SplitTests(
        feature=np.array([0, 1], np.int32),
        split=np.zeros(2, np.uint16),
        equals=np.zeros(2, np.bool_),
        besides=np.array([-2, -2], np.int32),
        left_sets=np.array([[False, True, False, True, True]]),
    )
    deeper = dataclasses.replace(leaf, structure=leaf.structure.deeper(wider))
    table, fresh = table_of(rows), table_of(rows)
    table.statistic(BinSums(leaf=leaf, bins=BINS), EVERYONE)
    query = BinSums(leaf=deeper, bins=BINS)
    assert table.statistic(query, EVERYONE).tolist() == fresh.statistic(query, EVERYONE).tolist()
    assert fresh.statistic(query, EVERYONE).tolist() == by_hand(query, rows, "numbers", False, EVERYONE)


@pytest.mark.parametrize("kernel", ["row_contributions", "parted_rows", "packed_sums", "rows_first"])
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_leaves_nothing_half_done(monkeypatch, kernel, late):
    rows = random_rows(60)
    levels = [TreeStructure.root(), STUMP, deepened(STUMP, 2)]
    asked = [BinSums(leaf=LeafMoments(loss="squared", clip=0.5).of(level, GROWN), bins=BINS) for level in levels]
    for stop in range(3):
        table, fresh = table_of(rows), table_of(rows)
        for query in asked[:stop]:
            table.statistic(query, EVERYONE)
        own, called = getattr(histogram_kernels, kernel), []

        def interrupted(*arguments, own=own, called=called):
            called.append(kernel)
            if late:
                own(*arguments)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(histogram_kernels, kernel, interrupted)
            try:
                table.statistic(asked[stop], EVERYONE)
            except KeyboardInterrupt:
                assert called
            else:
                assert not called
        for query in asked[stop:]:
            np.testing.assert_array_equal(table.statistic(query, EVERYONE), fresh.statistic(query, EVERYONE))


def test_levels_are_found_from_half_the_rows(monkeypatch):
    counted = []
    own = histogram_kernels.packed_sums

    def counting(visits, parts, words, offsets, leaves, order, bounds, *rest):
        counted.append(int((bounds[:, leaves + 1] - bounds[:, leaves]).sum()))
        own(visits, parts, words, offsets, leaves, order, bounds, *rest)

    monkeypatch.setattr(histogram_kernels, "packed_sums", counting)
    table, tree = table_of(random_rows(200)), TreeStructure.root()
    for level in range(4):
        leaf = LeafMoments(loss="squared", clip=0.5).of(tree, GROWN)
        table.statistic(BinSums(leaf=leaf, bins=BINS), EVERYONE)
        tree = deepened(tree, level)
    assert counted[0] == 200
    assert all(n <= 100 for n in counted[1:])


def bin_rows(binned):
    same = np.minimum(np.arange(256), np.diff(BINS.offsets)[:, np.newaxis] - 1)
    return BinRows(BINS.offsets, binned, np.arange(3), same)


@pytest.mark.parametrize("largest", [1, STEPS - 1, STEPS, 2**28])
def test_the_largest_contributions_do_not_run_into_each_other(largest):
    """Packed in 64 bits: as many rows as are added at once, and more, of each sign and of both."""
    levels = None
    for signs in ((1,), (-1,), (1, -1, -1)):
        n = 2500
        firsts = np.full(n, STEPS, np.int32)
        seconds = (largest * np.resize(signs, n)).astype(np.int32)
        binned = np.zeros((3, n), np.uint8)
        levels = LevelSums(bin_rows(binned), firsts, seconds, (STEPS, largest))
        sums = levels.of(TreeStructure.root(), binned)[0]
        assert sums[BINS.offsets[:-1]].tolist() == [[n * STEPS, int(seconds.sum(dtype=np.int64))]] * 3
        assert np.count_nonzero(sums) <= 6


def test_sums_wrap_modulo_two_to_the_64():
    most = 2**63 - 1
    order, packed = np.arange(3, dtype=np.uint16), np.full(3, (5 << 30) - 7)
    partial = np.full((1, 1, BINS.total, 2), most)
    binned = np.zeros((3, 3), np.uint8)
    histogram_kernels.packed_sums(
        3, 1, bin_rows(binned).words, BINS.offsets.astype(np.uint64), np.zeros(1, np.int64), order, np.array([[0, 3]]),
        packed, 30, 2, partial, 1, np.empty(8, np.uint64),
    )  # fmt: skip
    assert partial[0, 0, 0].tolist() == [-(2**63) + 14, most - 21]
    sides = np.full((1, 1, 2), most)
    two, nowhere = np.full(3, 2, np.int32), np.zeros(3, np.int32)
    test = SplitTests(feature=np.zeros(1, np.int32), split=np.ones(1, np.uint16), equals=np.zeros(1, np.bool_))
    histogram_kernels.side_sums(3, 1, binned, *test.lowered(), nowhere, two, -two, sides)
    assert sides[0, 0].tolist() == [-(2**63) + 5, most - 6]


@pytest.mark.slow  # the largest grids
def test_many_bins_of_a_feature_and_cells_beyond():
    """More than a byte holds: another loop; and a cell that no row of the schema has is in the last bin."""
    generator = np.random.default_rng(0)
    cells = np.stack((generator.integers(0, 700, 2000), generator.integers(0, 9, 2000))).astype(np.uint16)
    schema = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("t", -1, 1))
    wide = CandidateBins.of([FeatureCells(ordered=600, equality=()), FeatureCells(ordered=5, equality=())])
    tree = TreeStructure.root().deeper(SplitTests.every([*wide.cells]).taken(np.array([250])))
    targets = generator.uniform(-1, 1, 2000)
    leaf = LeafMoments(loss="squared", clip=1.0).of(tree, Ensemble(initial_score=0.0))
    table = Table(schema=schema, cells=cells, targets=targets)
    own = np.trunc(-targets * STEPS).astype(np.int64)
    for bins in (wide, CandidateBins.of(wide.cells, [np.arange(1, 600, 99), np.arange(1, 5)])):
        wanted = np.zeros((2, bins.total, 2), np.int64)
        for place in range(2):
            of = np.minimum(cells[place], (599, 4)[place])
            each = bins.offsets[place] + np.searchsorted(bins.thresholds[place], of, side="right")
            np.add.at(wanted, (tree.route(cells), each), np.stack((np.full(2000, STEPS), own), axis=1))
        found = table.statistic(BinSums(leaf=leaf, bins=bins), EVERYONE)
        assert found.tolist() == wanted.reshape(-1, 2).tolist()
        counts = table.statistic(BinCounts(bins=bins), EVERYONE)
        assert counts.ravel().tolist() == (wanted.sum(axis=0)[:, 0] // STEPS).tolist()


def test_one_thread_and_many_add_up_alike(monkeypatch):
    generator = np.random.default_rng(3)
    n = 20_001
    cells = np.stack([generator.integers(0, top, n) for top in (5, 3, 4)]).astype(np.uint8)
    targets = generator.uniform(-1, 1, n)
    mask = generator.random(n) < 0.3
    found = []
    for threshold in (0, 10**9):
        monkeypatch.setattr(routing, "THREADED_ROWS", threshold)
        table = Table(schema=NUMBERS, cells=cells, targets=targets)
        own = []
        with threads(3):
            for sampled in (EVERYONE, mask):
                tree = TreeStructure.root()
                for level in range(4):
                    leaf = LeafMoments(loss="logistic", clip=0.5).of(tree, GROWN)
                    sides = SideSums(leaf=leaf, tests=TESTS.taken(np.arange(2 * tree.n_leaves) % len(TESTS)))
                    own += [table.statistic(query, sampled) for query in (BinSums(leaf=leaf, bins=BINS), sides)]
                    tree = deepened(tree, level)
                hessians = BinHessians(bins=BINS).of(GROWN)
                own += [table.statistic(query, sampled) for query in (hessians, BinCounts(bins=BINS))]
        found.append(own)
    for threaded, alone in zip(*found, strict=True):
        np.testing.assert_array_equal(threaded, alone)


# ---- paid for, or refused ----

LEAF = LeafMoments(loss="squared", clip=0.5).of(STUMP, GROWN)


@pytest.mark.parametrize("adjacency", [A, Z, R])
@pytest.mark.parametrize(
    "query",
    [
        BinSums(leaf=LEAF, bins=BINS),
        SideSums(leaf=LEAF, tests=TESTS.taken(np.arange(6))),
        BinHessians(bins=BINS).of(GROWN),
        BinCounts(bins=BINS),
    ],
    ids=lambda query: type(query).__name__,
)
def test_a_round_pays_for_three_features_root_three_times(query, adjacency):
    rows = random_rows(30)
    ledger = Ledger(Budget(epsilon=100.0, delta=1e-5, adjacency=adjacency), unit=PrivacyUnit.ROW)
    noise = GaussianMechanism(stddev=4.0)
    event = noise.event(query.sensitivity(adjacency), adjacency)
    once = {A: 1.0, Z: 1.0, R: math.sqrt(2)}[adjacency]
    columns = math.hypot(1.0, 0.5) if isinstance(query, BinSums | SideSums) else 1.0
    size = 0.25 if hessians(query) else columns
    assert event.noise_multiplier == pytest.approx(4.0 / (once * size * math.sqrt(3)), rel=1e-14)
    curator = Curator(table_of(rows), ledger.grant(event, purpose="test"), SeededRandom(1))
    with curator.open(event, purpose="test") as opened:
        released = opened.release(query, noise, purpose="sums")
    exact = table_of(rows).statistic(query, EVERYONE)
    assert released.value.shape == exact.shape
    error = (released.value - exact) * 2.0 ** query.grid.exponents[0]
    assert 0 < np.abs(error).max() < 4.0 * 7


class Foreign(LeafMoments):
    pass


class ForeignLeaf(LeafQuery):
    pass


class ForeignBins(CandidateBins):
    pass


class ForeignTests(SplitTests):
    pass


def foreign(kind, own):
    return kind(**{field.name: getattr(own, field.name) for field in dataclasses.fields(own)})


FOREIGN = dataclasses.replace(LEAF, statistic=foreign(Foreign, LEAF.statistic))


def test_foreign_parts_and_features_that_are_not_there_are_refused():
    table = table_of([])
    far = CandidateBins.of([*CELLS, CELLS[0]])
    tests = TESTS.taken(np.arange(2))
    beyond = SplitTests(feature=tests.feature + 9, split=tests.split, equals=tests.equals)
    ratios = LeafRatios(loss="squared", clip=0.5, damping=1.0).of(STUMP, GROWN)
    subclassed = type("BinSums", (BinSums,), {})(leaf=LEAF, bins=BINS)
    named = dataclasses.replace(LEAF, positive=0)
    for query in (
        BinSums(leaf=FOREIGN, bins=BINS),
        BinSums(leaf=foreign(ForeignLeaf, LEAF), bins=BINS),
        BinSums(leaf=ratios, bins=type("B", (), {"total": 1, "__len__": lambda self: 1})()),
        BinSums(leaf=LEAF, bins=foreign(ForeignBins, BINS)),
        BinSums(leaf=LEAF, bins=far),
        BinSums(leaf=named, bins=BINS),
        SideSums(leaf=LEAF, tests=beyond),
        SideSums(leaf=LEAF, tests=foreign(ForeignTests, tests)),
        SideSums(leaf=FOREIGN, tests=tests),
        BinHessians(bins=far).of(GROWN),
        BinHessians(bins=BINS).of(GROWN, positive=1),
        BinCounts(bins=far),
        subclassed,
    ):
        with pytest.raises(RoundViolation):
            table.reader(query)
    classes = table_of([], kind="classes")
    for query in (BinSums(leaf=LEAF, bins=BINS), BinHessians(bins=BINS).of(GROWN)):
        with pytest.raises(RoundViolation, match="3 classes"):
            classes.reader(query)
    with pytest.raises(RoundViolation, match="class 3"):
        classes.reader(BinHessians(bins=BINS).of(GROWN, positive=3))


def test_bad_queries_are_refused():
    with pytest.raises(InvalidParameter, match="len\\(tests\\)"):
        SideSums(leaf=LEAF, tests=TESTS.taken(np.arange(3)))
    with pytest.raises(InvalidParameter, match="positive"):
        BinHessians(bins=BINS).of(GROWN, positive=-1)
    wide = CandidateBins.of([FeatureCells(ordered=65_000, equality=())] * 300)
    deep = TreeStructure.root()
    for _ in range(5):
        deep = deep.deeper(TESTS.taken(np.zeros(deep.n_leaves, np.int64)))
    for make in (
        lambda: BinCounts(bins=wide),
        lambda: BinHessians(bins=wide).of(GROWN),
        lambda: BinSums(leaf=dataclasses.replace(LEAF, structure=deep), bins=wide),
    ):
        with pytest.raises(InvalidParameter, match="at most 16777216"):
            make()
