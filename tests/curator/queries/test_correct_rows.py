"""Choices by correctly classified rows: plain Python's utilities, their ranges and exact losses between neighbours."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.curator import CorrectSplits, LabelledSplits, LabelledTests, Table, pairs_fit
from ledgerwood.curator.queries.splits.tests import open_tests
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
TESTS = SplitTests.every(CELLS)
ROOT = TreeStructure.root()
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
EVERYONE = np.empty(0, dtype=np.bool_)
KINDS = ("now", "ahead", "labelled")


def table(rows, classes=3):
    """Of rows (cell of x, cell of c, class)."""
    schema = Schema(features=FEATURES, target=Categorical("y", tuple(range(classes))))
    array = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Table(schema=schema, cells=array[:, :2].T.astype(np.uint8), classes=array[:, 2].astype(np.int32))


def query_of(kind, structure, tests=TESTS, classes=3):
    if kind == "labelled":
        return LabelledSplits(structure=structure, tests=tests, classes=classes)
    return CorrectSplits(structure=structure, tests=tests, classes=classes, lookahead=kind == "ahead")


def utilities(kind, structure, rows, sampled=EVERYONE, classes=3):
    return table(rows, classes).evidence(query_of(kind, structure, classes=classes))(sampled)


row = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-1, 2))
tables = st.lists(row, max_size=12)
pairs = st.sampled_from([(kind, stump) for kind in KINDS for stump in (False, True)])


def goes_left(test, cells):
    """By the test's own words."""
    cell = cells[int(TESTS.feature[test])]
    if TESTS.equals[test]:
        return cell == int(TESTS.split[test])
    return cell < int(TESTS.split[test]) or cell == int(TESTS.besides[test])


def correct(rows, label):
    return sum(1 for r in rows if r[2] == label)


def trees_of(depth, classes):
    """Every tree of the tests and labels, as a function of rows: how many it gets right."""
    if not depth:
        return [lambda rows, label=label: correct(rows, label) for label in range(classes)]
    below = trees_of(depth - 1, classes)

    def tree(test, left, right):
        return lambda rows: (
            left([r for r in rows if goes_left(test, r)]) + right([r for r in rows if not goes_left(test, r)])
        )

    return [tree(*parts) for parts in itertools.product(range(len(TESTS)), below, below)]


def wanted(kind, here, classes=3):
    """The utilities of a node by enumeration of all trees."""
    if kind == "labelled":
        return [tree(here) for tree in trees_of(1, classes)]
    below = trees_of(1 if kind == "ahead" else 0, classes)
    found = []
    for test in range(len(TESTS)):
        sides = [[r for r in here if goes_left(test, r)], [r for r in here if not goes_left(test, r)]]
        found.append(sum(max(tree(side) for tree in below) for side in sides))
    return found


@pytest.mark.slow_after(2)  # every tree of two levels
@settings(max_examples=40, deadline=None, derandomize=True)
@given(tables, pairs, st.data())
def test_utilities_are_the_most_that_any_completed_tree_gets_right(rows, pair, data):
    kind, stump = pair
    structure = STUMP if stump else ROOT
    sampled = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=np.bool_)
    found = utilities(kind, structure, rows, sampled)
    taken = [r for place, r in enumerate(rows) if not len(sampled) or sampled[place]]
    for node in range(structure.n_leaves):
        here = [r for r in taken if r[2] >= 0 and (not stump or (r[0] < 2) == (node == 0))]
        assert found[node].tolist() == wanted(kind, here)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(tables, row, row, pairs)
def test_a_row_changes_utilities_by_no_more_than_the_range(rows, one, other, pair):
    kind, stump = pair
    structure = STUMP if stump else ROOT
    without = utilities(kind, structure, rows)
    first, second = (utilities(kind, structure, [*rows, added]) for added in (one, other))
    added = first - without
    assert set(np.unique(added)) <= {0, 1}  # and so the range is 1
    assert not added[np.arange(structure.n_leaves) != (int(one[0] >= 2) if stump else 0)].any()
    query = query_of(kind, structure)
    for adjacency, shift in ((A, added), (Z, -added), (R, first - second)):
        spread = shift.max(axis=1) - shift.min(axis=1)
        assert spread.sum() <= query.sensitivity(adjacency).range


@pytest.mark.parametrize("kind", KINDS)
def test_the_range_is_attained(kind):
    """Some row is right with one candidate and wrong with another one."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        rows = [tuple(int(v) for v in r) for r in generator.integers(0, (5, 3, 3), (8, 3))]
        shift = utilities(kind, ROOT, rows)[0] - utilities(kind, ROOT, rows[:-1])[0]
        if shift.max() - shift.min() == query_of(kind, ROOT).sensitivity(A).range:
            return
    raise AssertionError("no such row")


def exponential_law(values, rate):
    weights = [math.exp(rate * (u - max(values))) for u in values]
    return [w / math.fsum(weights) for w in weights]


def flip_law(values, rate):
    """Permute-and-flip's: a candidate comes at a uniform time, and none before it was taken; by exact polynomials."""
    taken = [math.exp(rate * (u - max(values))) for u in values]
    law = []
    for place, own in enumerate(taken):
        none = np.polynomial.Polynomial([1.0])
        for other, p in enumerate(taken):
            if other != place:
                none *= np.polynomial.Polynomial([1.0, -p])
        law.append(own * none.integ()(1.0))
    return law


@pytest.mark.slow_after(2)  # exact distributions of many neighbours
@settings(max_examples=40, deadline=None, derandomize=True)
@given(tables, row, row, pairs)
def test_the_exact_loss_of_a_level_is_within_the_stated_epsilon(rows, one, other, pair):
    kind, stump = pair
    structure = STUMP if stump else ROOT
    query = query_of(kind, structure, classes=2)
    *rows, one, other = [(*r[:2], min(r[2], 1)) for r in (*rows, one, other)]
    without = utilities(kind, structure, rows, classes=2).tolist()
    first, second = (utilities(kind, structure, [*rows, added], classes=2).tolist() for added in (one, other))
    rate = 0.6
    for adjacency, sets in ((A, (without, first)), (R, (first, second))):
        for mechanism, law in (
            (PermuteAndFlipMechanism(rate=rate), flip_law),
            (ExponentialMechanism(rate=rate), exponential_law),
        ):
            if law is flip_law and kind == "labelled":
                continue  # 44 candidates: the polynomials cancel
            worst, spread = 0.0, 0.0
            for node in range(structure.n_leaves):
                laws = [law(values[node], rate) for values in sets]
                losses = [math.log(p / q) for p, q in zip(*laws, strict=True)]
                worst += max(map(abs, losses))
                spread += max(losses) - min(losses)
            epsilon = query.event(mechanism, adjacency).epsilon
            assert worst <= epsilon + 1e-7
            if law is exponential_law:
                assert spread <= epsilon + 1e-9


def test_the_price_is_attained():
    """A candidate that gains the row, far below the best."""
    tests = TESTS.taken(np.array([1]))
    query, rate = LabelledSplits(structure=ROOT, tests=tests, classes=2), 0.5
    rows = [(0, 0, 0)] * 60
    found = [table(held, 2).evidence(query)(EVERYONE)[0].tolist() for held in (rows, [*rows, (0, 0, 1)])]
    laws = [exponential_law(values, rate) for values in found]
    losses = [math.log(q / p) for p, q in zip(*laws, strict=True)]
    event = query.event(ExponentialMechanism(rate=rate), A)
    assert max(losses) - min(losses) == pytest.approx(event.epsilon, rel=1e-9)
    assert max(losses) == pytest.approx(event.epsilon, rel=1e-6)


def test_without_noise_the_best_test_comes_with_its_labels():
    rows = [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 0, 1), (3, 1, 1)]
    query = query_of("labelled", ROOT)
    sharp = PermuteAndFlipMechanism(rate=1e6)
    chosen = query.select(sharp, table(rows).evidence(query)(EVERYONE), SeededRandom(1))
    assert isinstance(chosen, LabelledTests)
    # "x < 2", with missing values on either side, which nobody has.
    assert (chosen.tests.feature.tolist(), chosen.tests.split.tolist()) == ([0], [2])
    assert chosen.labels.tolist() == [0, 1]


def test_looking_ahead_finds_what_one_level_cannot():
    """A class that is the parity of two columns: no test helps by itself."""
    rows = [(x, c, int((x < 2) != (c == 0))) for x in range(4) for c in range(2) for _ in range(5)]
    now, ahead = (utilities(kind, ROOT, rows, classes=2)[0] for kind in ("now", "ahead"))
    assert now.tolist() == [20] * len(TESTS)
    best = {(int(TESTS.feature[i]), int(TESTS.split[i])) for i in np.flatnonzero(ahead == 40)}
    assert best == {(0, 2), (1, 0), (1, 1)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_is_made_among_open_tests_only(kind):
    tests = SplitTests.every([FeatureCells(ordered=4, equality=())])
    rows = table([(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 0, 2)])
    query = query_of(kind, STUMP, tests)
    for seed in range(20):
        chosen = query.select(PermuteAndFlipMechanism(rate=0.01), rows.evidence(query)(EVERYONE), SeededRandom(seed))
        splits = chosen.tests if kind == "labelled" else chosen
        assert splits.split.tolist() == [1, 3]  # x < 2 is decided on both sides


def test_where_a_path_has_decided_all_tests_the_labels_are_still_chosen():
    tests = SplitTests.every([FeatureCells(ordered=2, equality=())])
    first = TreeStructure(feature=np.array([0], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))
    rows = table([(0, 0, 2)] * 5 + [(1, 0, 1)] * 4)
    query = query_of("labelled", first, tests)
    chosen = query.select(PermuteAndFlipMechanism(rate=1e6), rows.evidence(query)(EVERYONE), SeededRandom(2))
    structure = first.deeper(chosen.tests)
    leaves = structure.route(np.array([[0, 1], [0, 0]], dtype=np.uint8))
    assert chosen.labels[leaves].tolist() == [2, 1]


def test_labels_and_tests_are_drawn_by_the_distribution_of_the_mechanism():
    tests = TESTS.taken(np.array([0, 2]))
    query, rate, draws = LabelledSplits(structure=ROOT, tests=tests, classes=2), 0.4, 2000
    evidence = table([(0, 0, 0), (1, 0, 0), (1, 1, 1), (3, 0, 1), (3, 0, 1)], 2).evidence(query)(EVERYONE)
    source, found = SeededRandom(4), np.zeros(8)
    for _ in range(draws):
        chosen = query.select(PermuteAndFlipMechanism(rate=rate), evidence, source)
        place = int(np.flatnonzero(tests.split == chosen.tests.split[0])[0])
        found[int(query.places(np.array([place]), chosen.labels)[0])] += 1
    np.testing.assert_allclose(found / draws, flip_law(evidence[0].tolist(), rate), atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_refused(kind):
    rows = table([(0, 0, 0)])
    with pytest.raises(RoundViolation, match="of 4 classes"):
        rows.evidence(query_of(kind, ROOT, classes=4))
    far = SplitTests.every((*CELLS, CELLS[0]))
    with pytest.raises(RoundViolation, match=r"outside 0\.\.1"):
        rows.evidence(query_of(kind, ROOT, far))
    for mechanism in (GridlessMechanism(rate=1.0), LaplaceMechanism(scales=(1.0,))):
        with pytest.raises(RoundViolation, match="needs"):
            query_of(kind, ROOT).event(mechanism, A)
    for classes in (1, 1025, 2.5, True):
        with pytest.raises(InvalidParameter, match="classes"):
            query_of(kind, ROOT, classes=classes)


def test_levels_beyond_the_largest_size_are_refused():
    wide = SplitTests.every([FeatureCells(ordered=3000, equality=())])
    assert not pairs_fit(wide, nodes=1, classes=2)
    assert query_of("now", ROOT, wide).sensitivity(A).range == 1.0
    with pytest.raises(InvalidParameter, match="pairs of cells"):
        query_of("ahead", ROOT, wide)
    assert query_of("labelled", ROOT, wide, classes=74).classes == 74
    with pytest.raises(InvalidParameter, match="candidates of a level"):
        query_of("labelled", ROOT, wide, classes=75)
    with pytest.raises(InvalidParameter, match="lookahead"):
        CorrectSplits(structure=ROOT, tests=TESTS, classes=2, lookahead=1)


KIND = Categorical("c", ("a", "b", "d", "e"))
MANY = (FeatureCells(ordered=3, equality=(3,)), FeatureCells(ordered=0, equality=(0, 1, 2, 3)))
SETS = SplitTests.every(MANY, None, 9)
categories = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 1))


def sent_left(tests, place, cells):
    """By the test's own words, sets included."""
    cell, besides = cells[int(tests.feature[place])], int(tests.besides[place])
    if besides < -1:
        marked = tests.left_sets[-2 - besides]
        return cell < len(marked) and bool(marked[cell])
    if tests.equals[place]:
        return cell == int(tests.split[place])
    return cell < int(tests.split[place]) or cell == besides


def test_sets_are_listed_once_a_partition():
    found = {frozenset(np.flatnonzero(line).tolist()) for line in SETS.left_sets}
    assert found == {frozenset(each) for each in ((1, 2), (1, 3), (2, 3))}
    assert len(SETS) == 2 * 2 + 1 + 4 + 3
    assert SplitTests.every(MANY, None, 3).left_sets is None
    five = SplitTests.every((FeatureCells(ordered=0, equality=tuple(range(5))),), None, 9)
    sides = {
        frozenset((frozenset(np.flatnonzero(line).tolist()), frozenset(range(5)) - set(np.flatnonzero(line))))
        for line in five.left_sets
    }
    assert len(sides) == len(five.left_sets) == 2**4 - 1 - 5  # all partitions in two but those with one alone


@pytest.mark.slow_after(2)  # every tree of two levels
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(categories, max_size=12), categories, st.integers(0, len(SETS) - 1))
def test_sets_of_categories_are_tests_like_others(rows, added, root):
    """Below any test, of sets too: utilities by enumeration, what one row changes, and which tests are open."""
    structure = ROOT.deeper(SETS.taken(np.array([root])))
    schema = Schema(features=(Numeric("x", 0.0, 3.0, missing=True), KIND), target=Categorical("y", (0, 1)))

    def found(kind, held):
        array = np.array(held, dtype=np.int64).reshape(-1, 3)
        own = Table(schema=schema, cells=array[:, :2].T.astype(np.uint8), classes=array[:, 2].astype(np.int32))
        return own.evidence(query_of(kind, structure, SETS, classes=2))(EVERYONE)

    def best(side):
        return max(correct(side, label) for label in range(2))

    def parted(test, side):
        return [[r for r in side if sent_left(SETS, test, r) == left] for left in (True, False)]

    def ahead(side):
        return max(sum(map(best, parted(test, side))) for test in range(len(SETS)))

    after = {kind: found(kind, [*rows, added]) for kind in KINDS}
    for kind in KINDS:
        assert set(np.unique(after[kind] - found(kind, rows))) <= {0, 1}
    for node, side in enumerate(parted(root, [*rows, added])):
        for test in range(len(SETS)):
            sides = parted(test, side)
            assert after["now"][node, test] == sum(map(best, sides))
            assert after["ahead"][node, test] == sum(map(ahead, sides))
            pairs_ = [correct(sides[0], a) + correct(sides[1], b) for a in range(2) for b in range(2)]
            assert after["labelled"][node, 4 * test : 4 * test + 4].tolist() == pairs_
    open_ = open_tests(SETS, structure)
    every = list(itertools.product(range(4), range(6)))  # the last category is not listed
    for node, here in enumerate(parted(root, every)):
        assert open_[node].tolist() == [all(parted(test, here)) for test in range(len(SETS))]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, len(SETS) - 1), min_size=3, max_size=3))
def test_which_tests_two_levels_of_sets_leave_open(path):
    structure = ROOT.deeper(SETS.taken(np.array(path[:1]))).deeper(SETS.taken(np.array(path[1:])))
    every = list(itertools.product(range(4), range(6)))  # the last category is not listed
    for node, open_ in enumerate(open_tests(SETS, structure)):
        here = [r for r in every if sent_left(SETS, path[0], r) == (node < 2)]
        here = [r for r in here if sent_left(SETS, path[1 + node // 2], r) == (node % 2 == 0)]
        if not here:  # a second test that the first one decides is never chosen
            continue
        for test, is_open in enumerate(open_):
            left = [sent_left(SETS, test, r) for r in here]
            assert is_open == (any(left) and not all(left))


def test_a_chosen_set_travels_alone():
    chosen = SETS.taken(np.array([len(SETS) - 1, 0, len(SETS) - 3, len(SETS) - 1, -1]))
    assert chosen.left_sets.shape == (2, 4)
    for place, test in enumerate((len(SETS) - 1, 0, len(SETS) - 3, len(SETS) - 1)):
        for cells in itertools.product(range(4), range(5)):
            assert sent_left(chosen, place, cells) == sent_left(SETS, test, cells)
    assert SETS.taken(np.array([0, -1])).left_sets is None


@pytest.mark.slow  # compiles the kernels for threads, and needs many rows
def test_many_rows_of_wide_cells_are_looked_at_as_few_are():
    """Rows beyond the threads' bound, each twice: twice the counts, and so twice the utilities, of a half of them."""
    generator = np.random.default_rng(3)
    n = 75_001
    cells = generator.integers(0, 300, (2, n)).astype(np.uint16)
    classes = generator.integers(-1, 3, n).astype(np.int32)
    sampled = generator.random(n) < 0.7
    schema = Schema(features=(FEATURES[0], Numeric("z", 0.0, 1.0)), target=Categorical("y", (0, 1, 2)))
    tests = SplitTests.every((FeatureCells(ordered=300, equality=()),) * 2)
    cut = TreeStructure(feature=np.array([1], np.int32), split=np.array([100], np.uint16), equals=np.array([False]))
    for kind in KINDS:
        query = query_of(kind, cut, tests)
        once = Table(schema=schema, cells=cells, classes=classes).evidence(query)(sampled)
        twice = Table(schema=schema, cells=np.tile(cells, 2), classes=np.tile(classes, 2))
        np.testing.assert_array_equal(twice.evidence(query)(np.tile(sampled, 2)), 2 * once)
    here = (classes >= 0) & sampled & (cells[1] < 100)
    left, right = ((cells[0, here] < 50), (cells[0, here] >= 50))
    counts = [[int(((classes[here] == k) & side).sum()) for k in range(3)] for side in (left, right)]
    now = Table(schema=schema, cells=cells, classes=classes).evidence(query_of("now", cut, tests))(sampled)
    assert now[0, 49] == max(counts[0]) + max(counts[1])
