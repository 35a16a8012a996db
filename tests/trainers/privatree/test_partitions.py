"""Splits by noisy counts of classes: against all thresholds and all sets, in exact fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.curator import CandidateBins
from ledgerwood.ensemble import FeatureCells, SplitTests, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.privatree.partitions import least_gini_splits

CELLS = (FeatureCells(ordered=6, equality=(6,)), FeatureCells(ordered=0, equality=(0, 1, 2, 3)))
ROOT = TreeStructure.root()
NONE = np.empty(0, np.int64)


def bins_of(features=(0, 1)):
    return CandidateBins.of(CELLS, [np.array([2, 3, 5]), NONE], features)


def first_cells(bins):
    """(feature, first cell) of each bin of `bins_of`."""
    own = {0: [0, 2, 3, 5, 6], 1: [0, 1, 2, 3, 4]}
    return [(feature, cell) for feature in bins.features.tolist() for cell in own[feature]]


def weighted(left, right):
    """The sides' impurity, weighted by their rows' shares, exactly."""
    rows = Fraction(sum(left) + sum(right))
    return 1 - sum(Fraction(sum(c * c for c in side), sum(side)) for side in (left, right) if sum(side)) / rows


def sent(tests, leaf, cells):
    """Whether each cell of a feature goes left, by the tree's own routing."""
    stump = ROOT.deeper(SplitTests(
        feature=np.zeros(1, np.int32), split=tests.split[[leaf]], equals=tests.equals[[leaf]],
        besides=tests.besides[[leaf]], left_sets=tests.left_sets,
    ))  # fmt: skip
    return (stump.route(np.array([cells], dtype=np.uint8)) == 0).tolist()


def found_impurity(tests, leaf, bins, counts):
    feature = int(tests.feature[leaf])
    mine = [(b, cell) for b, (f, cell) in enumerate(first_cells(bins)) if f == feature]
    left = sent(tests, leaf, [cell for _, cell in mine])
    classes = range(counts.shape[2])
    sides = [[sum(max(0, int(counts[leaf, b, k])) for (b, _), l in zip(mine, left, strict=True) if l == side)
              for k in classes] for side in (True, False)]  # fmt: skip
    return weighted(*sides)


def all_sides(bins, feature, all_sets):
    """Every partition that a feature's tests allow, as the list of its bins that go left."""
    mine = [b for b, (f, _) in enumerate(first_cells(bins)) if f == feature]
    if feature == 0:
        ordered, missing = mine[:4], mine[4]
        for cut in range(1, 4):
            yield ordered[:cut], mine
            yield [*ordered[:cut], missing], mine
        yield [missing], mine
    elif all_sets:
        for size in range(1, len(mine)):
            for chosen in itertools.combinations(mine, size):
                yield list(chosen), mine
    else:
        for cut in range(1, len(mine)):
            yield mine[:cut], mine


def counted(bins, classes, low=-3):
    size = bins.total * classes
    return st.lists(st.integers(low, 9), min_size=size, max_size=size).map(
        lambda drawn: np.array(drawn).reshape(1, bins.total, classes)
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from([2, 3]), st.sampled_from([(0,), (1,), (0, 1), (1, 0)]))
def test_no_threshold_and_no_set_is_better(data, classes, features):
    bins = bins_of(features)
    counts = data.draw(counted(bins, classes))
    tests = least_gini_splits(ROOT, bins, counts)
    best = None
    for feature in features:
        for left, mine in all_sides(bins, feature, all_sets=classes == 2):
            clamped = np.maximum(counts[0], 0)
            sides = clamped[left].sum(axis=0).tolist(), clamped[[b for b in mine if b not in left]].sum(axis=0).tolist()
            if sum(sides[0]) + sum(sides[1]):
                worth = weighted(*sides)
                best = worth if best is None else min(best, worth)
    if best is None:
        assert not any(sent(tests, 0, range(7)))
    else:
        assert abs(found_impurity(tests, 0, bins, counts) - best) < 1e-12


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from([2, 3]))
def test_leaves_are_split_apart_from_each_other(data, classes):
    bins = bins_of((0,))
    upper = ROOT.deeper(
        SplitTests(feature=np.array([7], np.int32), split=np.array([1], np.uint16), equals=np.array([False]))
    )
    counts = np.concatenate([data.draw(counted(bins, classes)) for _ in range(2)])
    both = least_gini_splits(upper, bins, counts)
    for leaf in range(2):
        alone = least_gini_splits(ROOT, bins, counts[[leaf]])
        for name in ("feature", "split", "equals", "besides"):
            assert getattr(both, name)[leaf] == getattr(alone, name)[0]


@pytest.mark.slow  # many fits and plans
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_a_tree_never_repeats_what_its_path_has_decided(data):
    """Down three levels: where a leaf is split, cells that reach it go both ways, and others change nothing."""
    bins = bins_of((0, 1))
    grid = np.array([(x, c) for x in (0, 2, 3, 5, 6) for c in range(5)], dtype=np.uint8).T
    structure = ROOT
    for _ in range(3):
        counts = np.concatenate([data.draw(counted(bins, 2, low=1)) for _ in range(structure.n_leaves)])
        tests = least_gini_splits(structure, bins, counts)
        leaves = structure.route(grid)
        noisy = counts.copy()
        for leaf in range(structure.n_leaves):
            here = grid[:, leaves == leaf]
            for b, (feature, cell) in enumerate(first_cells(bins)):
                if cell not in here[feature].tolist():
                    noisy[leaf, b] += 1000
        assert np.array_equal(structure.deeper(tests).route(grid), structure.deeper(
            least_gini_splits(structure, bins, noisy)).route(grid))  # fmt: skip
        deeper = structure.deeper(tests).route(grid)
        for leaf in range(structure.n_leaves):
            below = set(deeper[leaves == leaf].tolist())
            undecided = any(len(set(grid[feature, leaves == leaf].tolist())) > 1 for feature in range(2))
            # A leaf that no cells reach, as the left one of a test that sends all right, has nothing to send.
            assert below == ({2 * leaf, 2 * leaf + 1} if undecided else {2 * leaf + 1} if leaf in leaves else set())
        structure = structure.deeper(tests)


def test_the_first_of_equals_is_chosen():
    bins = bins_of((1, 0))
    counts = np.ones((1, bins.total, 2))
    tests = least_gini_splits(ROOT, bins, counts)
    assert tests.feature.tolist() == [1]
    assert least_gini_splits(ROOT, bins_of((0, 1)), counts).split.tolist() == [2]


def test_categories_that_are_not_listed_are_on_the_right():
    bins = bins_of((1,))
    counts = np.array([[[9, 1], [1, 9], [8, 2], [0, 9], [9, 0]]])
    tests = least_gini_splits(ROOT, bins, counts)
    assert tests.left_sets.tolist() == [[False, True, False, True]]
    assert tests.besides.tolist() == [-2]
    assert least_gini_splits(ROOT, bins, counts[:, :, ::-1]).left_sets.tolist() == [[False, True, False, True]]


def test_what_are_not_counts_is_refused():
    bins = bins_of()
    for shape in ((1, bins.total), (2, bins.total, 2), (1, bins.total, 1), (1, bins.total + 1, 2)):
        with pytest.raises(InvalidParameter, match=r"counts\.shape"):
            least_gini_splits(ROOT, bins, np.zeros(shape))
    for wrong in (np.nan, np.inf):
        with pytest.raises(InvalidParameter, match="finite"):
            least_gini_splits(ROOT, bins, np.full((1, bins.total, 2), wrong))
