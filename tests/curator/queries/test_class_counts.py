"""Counts by class, impurities and labels: plain Python's, their ranges and exact losses between all neighbours."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.curator import BinClassCounts, CandidateBins, GiniSplits, LeafClassCounts, LeafLabels, Table
from ledgerwood.curator.queries.splits import gains
from ledgerwood.ensemble import FeatureCells, SplitTests, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import (
    ExponentialMechanism,
    GridlessMechanism,
    LaplaceMechanism,
    PermuteAndFlipMechanism,
    SeededRandom,
)

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
FEATURES = (Numeric("x", 0.0, 4.0, missing=True), Categorical("c", ("a", "b")))
CELLS = (FeatureCells(ordered=4, equality=(4,)), FeatureCells(ordered=0, equality=(0, 1)))
ROOT = TreeStructure.root()
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
EVERYONE = np.empty(0, dtype=np.bool_)


def table(rows, classes=3):
    """Of rows (cell of x, cell of c, class)."""
    schema = Schema(features=FEATURES, target=Categorical("y", tuple(range(classes))))
    array = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Table(schema=schema, cells=array[:, :2].T.astype(np.uint8), classes=array[:, 2].astype(np.int32))


row = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-1, 2))
tables = st.lists(row, max_size=12)


def goes_left(structure, cells):
    return cells[0] < int(structure.split[0])


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables, st.booleans(), st.data())
def test_counts_are_those_of_plain_python(rows, stump, data):
    structure = STUMP if stump else ROOT
    cut = sorted(data.draw(st.sets(st.integers(1, 3))))
    features = data.draw(st.permutations([0, 1]))[: data.draw(st.integers(1, 2))]
    bins = CandidateBins.of(CELLS, [np.array(cut, np.int64), np.empty(0, np.int64)], features)
    sampled = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=np.bool_)
    held = table(rows)
    counts = held.reader(BinClassCounts(structure=structure, bins=bins, classes=3))(sampled)
    leaves = held.reader(LeafClassCounts(classes=3).of(structure))(sampled)
    wanted = np.zeros((structure.n_leaves, bins.total, 3), dtype=np.int64)
    wanted_leaves = np.zeros((structure.n_leaves, 3), dtype=np.int64)
    for place, (x, c, kind) in enumerate(rows):
        if kind < 0 or (len(sampled) and not sampled[place]):
            continue
        leaf = 0 if not stump or goes_left(structure, (x, c)) else 1
        wanted_leaves[leaf, kind] += 1
        for at, feature in enumerate(features):
            own = (sum(x >= t for t in cut) if x < 4 else len(cut) + 1) if feature == 0 else min(2, c)
            wanted[leaf, bins.offsets[at] + own, kind] += 1
    assert counts.shape == (wanted.size, 1)
    assert counts.ravel().tolist() == wanted.ravel().tolist()
    assert leaves.ravel().tolist() == wanted_leaves.ravel().tolist()


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=100, deadline=None, derandomize=True)
@given(tables, row, row)
def test_a_row_moves_counts_by_no_more_than_stated(rows, one, other):
    bins = CandidateBins.of(CELLS)
    for query in (BinClassCounts(structure=STUMP, bins=bins, classes=3), LeafClassCounts(classes=3).of(STUMP)):
        without = table(rows).reader(query)(EVERYONE)
        first, second = (table([*rows, added]).reader(query)(EVERYONE) for added in (one, other))
        for adjacency, shift in ((A, first - without), (Z, without - first), (R, first - second)):
            bound = query.sensitivity(adjacency)
            assert np.abs(shift).sum() <= bound.l1((1.0,))
            assert float((shift**2).sum()) <= bound.l2((1.0,)) ** 2 * (1 + 1e-12)


def impurity(counts):
    """n times the Gini impurity of a side, exactly."""
    n = sum(counts)
    return n - Fraction(sum(c * c for c in counts), n) if n else Fraction(0)


sides = st.lists(st.integers(0, 10**6), min_size=2, max_size=6)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=400, deadline=None, derandomize=True)
@given(sides, st.data())
def test_a_row_raises_the_impurity_by_less_than_two_and_the_steps_by_the_range(side, data):
    kind = data.draw(st.integers(0, len(side) - 1))
    more = [c + (place == kind) for place, c in enumerate(side)]
    assert 0 <= impurity(more) - impurity(side) < 2
    steps = gains.purity(np.array([side, more]))
    assert abs(int(steps[1]) - int(steps[0])) <= 2**20  # so that two candidates differ by at most 2**21: range 2
    for counts, found in zip((side, more), steps.tolist(), strict=True):
        n = sum(counts)
        assert found == (math.floor(Fraction(sum(c * c for c in counts) << 20, n)) if n else 0)


def test_rows_beyond_two_to_the_31_are_counted_in_integers_without_end():
    counts = np.array([[2**33, 3], [2**31, 2**31], [0, 0]])
    wanted = [math.floor(Fraction((a * a + b * b) << 20, a + b)) if a + b else 0 for a, b in counts.tolist()]
    assert gains.purity(counts).tolist() == wanted


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=100, deadline=None, derandomize=True)
@given(tables, st.booleans())
def test_utilities_are_the_impurities_of_the_sides(rows, stump):
    structure = STUMP if stump else ROOT
    tests = SplitTests.every(CELLS)
    query = GiniSplits(structure=structure, tests=tests, classes=3)
    found = table(rows).evidence(query)(EVERYONE)
    feature, below, besides, _ = tests.lowered()
    for node in range(structure.n_leaves):
        here = [r for r in rows if r[2] >= 0 and (not stump or goes_left(structure, r) == (node == 0))]
        for test in range(len(tests)):
            left = [0, 0, 0]
            right = [0, 0, 0]
            for r in here:
                cell = r[feature[test]]
                (left if cell < below[test] or cell == besides[test] else right)[r[2]] += 1
            wanted = len(here) - impurity(left) - impurity(right)
            assert 0 <= wanted - Fraction(int(found[node, test]), 2**20) < Fraction(2, 2**20)


def choice_law(utilities, rate):
    """The exponential mechanism's."""
    top = max(utilities)
    weights = [math.exp(rate * (u - top) / 2**20) for u in utilities]
    return [w / math.fsum(weights) for w in weights]


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables, row, row)
def test_the_exact_loss_of_a_level_is_within_the_stated_range(rows, one, other):
    tests = SplitTests.every(CELLS)
    query = GiniSplits(structure=STUMP, tests=tests, classes=3)
    rate = 0.7

    def losses(first, second):
        """Of each pair of outputs of the two nodes."""
        spans = []
        for node, candidates in enumerate(open_candidates(query)):
            laws = [choice_law(values[node, candidates].tolist(), rate) for values in (first, second)]
            spans.append([math.log(p / q) for p, q in zip(*laws, strict=True)])
        return [sum(pair) for pair in itertools.product(*spans)]

    without = table(rows).evidence(query)(EVERYONE)
    first, second = (table([*rows, added]).evidence(query)(EVERYONE) for added in (one, other))
    for adjacency, pair in ((A, (first, without)), (R, (first, second))):
        found = losses(*pair)
        event = query.event(ExponentialMechanism(rate=rate), adjacency)
        assert max(found) - min(found) <= event.epsilon + 1e-9


def open_candidates(query):
    """Of the stump "x < 2": tests of x that its own side still leaves open, and all of c."""
    feature, below, besides, _ = query.tests.lowered()
    for side in ({0, 1}, {2, 3, 4}):
        reached = [side, {0, 1, 2}]
        keep = []
        for test in range(len(query.tests)):
            cells = reached[feature[test]]
            left = {c for c in cells if c < below[test] or c == besides[test]}
            if left and left != cells:
                keep.append(test)
        yield np.array(keep)


def flip_law(counts, rate):
    """Permute-and-flip's, by its definition: over all orders."""
    heads = [math.exp(rate * (c - max(counts))) for c in counts]
    law = [0.0] * len(counts)
    orders = list(itertools.permutations(range(len(counts))))
    for order in orders:
        left = 1.0
        for candidate in order:
            law[candidate] += left * heads[candidate] / len(orders)
            left *= 1.0 - heads[candidate]
    return law


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables, row, row)
def test_the_exact_loss_of_all_labels_is_within_the_stated_epsilon(rows, one, other):
    query = LeafLabels(structure=STUMP, classes=3)
    rate = 0.9
    for mechanism, law in (
        (PermuteAndFlipMechanism(rate=rate), flip_law),
        (ExponentialMechanism(rate=rate), lambda counts, r: choice_law([c * 2**20 for c in counts], r)),
    ):
        without = table(rows).evidence(query)(EVERYONE).reshape(2, 3).tolist()
        first, second = (
            table([*rows, added]).evidence(query)(EVERYONE).reshape(2, 3).tolist() for added in (one, other)
        )
        for adjacency, pair in ((A, (first, without)), (R, (first, second))):
            worst = 0.0
            for leaf in range(2):
                laws = [law(counts[leaf], rate) for counts in pair]
                worst += max(abs(math.log(p / q)) for p, q in zip(*laws, strict=True))
            assert worst <= query.event(mechanism, adjacency).epsilon + 1e-9


def test_the_price_of_labels_is_attained():
    query = LeafLabels(structure=ROOT, classes=2)
    rate = 0.5
    law = [flip_law(counts, rate) for counts in ([0, 40], [0, 41])]
    loss = math.log(law[0][0] / law[1][0])
    assert loss == pytest.approx(query.event(PermuteAndFlipMechanism(rate=rate), A).epsilon, rel=1e-6)


def test_labels_are_the_law_of_the_mechanism():
    query, source = LeafLabels(structure=STUMP, classes=3), SeededRandom(5)
    evidence = np.array([[3], [1], [2], [0], [0], [4]])
    draws = np.array([query.select(PermuteAndFlipMechanism(rate=0.6), evidence, source) for _ in range(4000)])
    for leaf, counts in enumerate(([3, 1, 2], [0, 0, 4])):
        found = np.bincount(draws[:, leaf], minlength=3) / 4000
        assert np.abs(found - flip_law(counts, 0.6)).max() < 0.03


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_split_is_chosen_among_open_tests_only():
    tests = SplitTests.every([FeatureCells(ordered=4, equality=())])
    query = GiniSplits(structure=STUMP, tests=tests, classes=3)
    rows = table([(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 0, 2)])
    chosen = query.select(ExponentialMechanism(rate=100.0), rows.evidence(query)(EVERYONE), SeededRandom(1))
    assert chosen.split.tolist() == [1, 3]  # x < 2 is decided on both sides


def test_foreign_pieces_and_other_classes_are_refused():
    rows = table([(0, 0, 0)])
    bins = CandidateBins.of(CELLS)
    tests = SplitTests.every(CELLS)
    with pytest.raises(RoundViolation, match="of 2 classes, and the table of 3"):
        rows.reader(BinClassCounts(structure=ROOT, bins=bins, classes=2))
    with pytest.raises(RoundViolation, match="of 4 classes"):
        rows.evidence(GiniSplits(structure=ROOT, tests=tests, classes=4))
    with pytest.raises(RoundViolation, match="of 2 classes"):
        rows.evidence(LeafLabels(structure=ROOT, classes=2))
    with pytest.raises(RoundViolation, match=r"outside 0\.\.1"):
        rows.reader(BinClassCounts(structure=ROOT, bins=CandidateBins.of((*CELLS, CELLS[0])), classes=3))
    far = SplitTests.every((*CELLS, CELLS[0]))
    with pytest.raises(RoundViolation, match=r"outside 0\.\.1"):
        rows.evidence(GiniSplits(structure=ROOT, tests=far, classes=3))
    for query in (LeafLabels(structure=ROOT, classes=3), GiniSplits(structure=ROOT, tests=tests, classes=3)):
        for mechanism in (GridlessMechanism(rate=1.0), LaplaceMechanism(scales=(1.0,))):
            with pytest.raises(RoundViolation, match="needs"):
                query.event(mechanism, A)
    for classes in (1, 1025, 2.5, True):
        with pytest.raises(InvalidParameter, match="classes"):
            LeafLabels(structure=ROOT, classes=classes)
        with pytest.raises(InvalidParameter, match="classes"):
            GiniSplits(structure=ROOT, tests=tests, classes=classes)
    with pytest.raises(InvalidParameter, match="counts"):
        BinClassCounts(structure=ROOT, bins=CandidateBins.of([FeatureCells(ordered=40000, equality=())]), classes=1000)
    full = 2**14 - 1
    deep = TreeStructure(feature=np.zeros(full, np.int32), split=np.ones(full, np.uint16), equals=np.zeros(full, bool))
    for query in (lambda structure, classes: LeafClassCounts(classes=classes).of(structure).statistic, LeafLabels):
        assert query(structure=deep, classes=1024).classes == 1024
        with pytest.raises(InvalidParameter, match="at most 16777216"):
            query(structure=deep.deeper(SplitTests.every([CELLS[0]]).taken(np.zeros(full + 1, np.int64))), classes=1024)
    partition = SplitTests(
        feature=np.array([1], np.int32), split=np.array([0], np.uint16), equals=np.array([False]),
        besides=np.array([-2], np.int32), left_sets=np.array([[True, False]]),
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="left_sets"):
        GiniSplits(structure=ROOT, tests=partition, classes=3)


@pytest.mark.slow  # compiles the kernel for threads, and needs many rows
def test_many_rows_of_wide_cells_are_counted_as_few_are():
    generator = np.random.default_rng(3)
    n = 150_001  # beyond THREADED_ROWS, and odd
    cells = generator.integers(0, 1000, (2, n)).astype(np.uint16)
    classes = generator.integers(-1, 3, n).astype(np.int32)
    sampled = generator.random(n) < 0.7
    schema = Schema(features=(FEATURES[0], Numeric("z", 0.0, 1.0)), target=Categorical("y", (0, 1, 2)))
    rows = Table(schema=schema, cells=cells, classes=classes)
    wide = (FeatureCells(ordered=1000, equality=()),) * 2
    cut = TreeStructure(feature=np.array([1], np.int32), split=np.array([300], np.uint16), equals=np.array([False]))
    found = rows.reader(BinClassCounts(structure=cut, bins=CandidateBins.of(wide), classes=3))(sampled)
    wanted = np.zeros((2, 2000, 3), dtype=np.int64)
    here = sampled & (classes >= 0)
    for feature in range(2):
        leaf = (cells[1, here] >= 300).astype(int)
        np.add.at(wanted, (leaf, feature * 1000 + cells[feature, here].astype(int), classes[here]), 1)
    assert np.array_equal(found.ravel(), wanted.ravel())
    leaves = rows.reader(LeafClassCounts(classes=3).of(cut))(sampled)
    assert leaves.ravel().tolist() == wanted[:, :1000].sum(axis=1).ravel().tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**16), st.booleans())
def test_two_classes_are_counted_from_half_the_rows_of_the_level_above(n, seed, some):
    """Level by level and in any order, over any sample: as numpy counts them."""
    generator = np.random.default_rng(seed)
    cells = np.stack([generator.integers(0, 5, n), generator.integers(0, 3, n)]).astype(np.uint8)
    classes = generator.integers(-1, 2, n).astype(np.int32)
    sampled = generator.random(n) < 0.6 if some else EVERYONE
    schema = Schema(features=FEATURES, target=Categorical("y", (0, 1)))
    held, bins = Table(schema=schema, cells=cells, classes=classes), CandidateBins.of(CELLS)
    trees = [ROOT, STUMP]
    trees.append(STUMP.deeper(SplitTests.every(CELLS).taken(generator.integers(0, 5, 2))))
    here = (classes >= 0) & (sampled if some else True)
    for structure in (*trees, *(trees[place] for place in generator.integers(0, 3, 3))):
        query = BinClassCounts(structure=structure, bins=bins, classes=2)
        counts = held.statistic(query, sampled).reshape(structure.n_leaves, bins.total, 2)
        wanted, leaves = np.zeros_like(counts), structure.route(cells)
        for place in range(2):
            last = np.diff(bins.offsets)[place] - 1
            own = bins.offsets[place] + np.minimum(cells[place, here], last)
            np.add.at(wanted, (leaves[here], own, classes[here]), 1)
        np.testing.assert_array_equal(counts, wanted)
