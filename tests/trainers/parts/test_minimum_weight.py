"""Minimum child weight: what released numbers of rows undo, and nothing else does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.trainers.parts.leaves import merged_leaves, without_light_splits


def pooled_from_the_leaves(sums, minimum):
    """The other way round: undo the lowest light splits, pool, and go up; (value of each leaf)."""
    if len(sums) == 1:
        return sums
    half = len(sums) // 2
    left, right = sums[:half], sums[half:]
    if min(left[:, 0].sum(), right[:, 0].sum()) < minimum:
        return np.tile(sums.sum(axis=0), (len(sums), 1))
    return np.vstack([pooled_from_the_leaves(left, minimum), pooled_from_the_leaves(right, minimum)])


@settings(max_examples=150)
@given(st.integers(0, 4), st.data(), st.integers(-4, 30))
def test_leaves_below_a_light_split_have_its_pooled_sums(depth, data, minimum):
    rows = data.draw(st.lists(st.integers(-5, 20), min_size=2**depth, max_size=2**depth))
    sums = np.column_stack([rows, np.arange(2**depth) - 3]).astype(float)
    np.testing.assert_array_equal(merged_leaves(sums, minimum), pooled_from_the_leaves(sums, minimum))


def test_a_minimum_that_all_sides_have_changes_nothing():
    sums = np.array([[5.0, 1.0], [6.0, 2.0], [7.0, 3.0], [8.0, 4.0]])
    np.testing.assert_array_equal(merged_leaves(sums, 5.0), sums)
    # Between two leaves' numbers: only the split above the lighter one goes, as both sides of the root have enough.
    np.testing.assert_array_equal(merged_leaves(sums, 5.5), [[11.0, 3.0], [11.0, 3.0], [7.0, 3.0], [8.0, 4.0]])
    np.testing.assert_array_equal(merged_leaves(sums, 12.0), np.tile(sums.sum(axis=0), (4, 1)))


def random_tests(generator, n):
    return SplitTests(
        feature=generator.integers(0, 3, n).astype(np.int32),
        split=generator.integers(1, 8, n).astype(np.uint16),
        equals=generator.random(n) < 0.3,
        besides=np.full(n, -1, np.int32),
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_level_keeps_the_splits_that_have_enough_on_both_sides(seed):
    """Grown level by level: an undone node sends all rows right, and so do all nodes below it."""
    generator = np.random.default_rng(seed)
    cells = generator.integers(0, 9, (3, 400)).astype(np.uint8)
    structure, may_split, minimum = TreeStructure.root(), np.ones(1, bool), 40
    undone = set()
    for level in range(4):
        whole = structure.deeper(random_tests(generator, structure.n_leaves))
        rows = np.bincount(whole.route(cells), minlength=whole.n_leaves).astype(float)
        rows += generator.integers(-9, 10, whole.n_leaves)
        structure, may_split = without_light_splits(whole, rows, may_split, minimum)
        first = 2**level - 1
        for node in range(first, 2 * first + 1):
            place = node - first
            light = min(rows[2 * place], rows[2 * place + 1]) < minimum
            if light or (node - 1) // 2 in undone:
                undone.add(node)
            same = [getattr(structure, name)[node] == getattr(whole, name)[node] for name in ("feature", "split")]
            assert all(same) or node in undone
            assert may_split[2 * place] == may_split[2 * place + 1] == (node not in undone)
        leaves = np.bincount(structure.route(cells), minlength=structure.n_leaves)
        for node in undone & set(range(first, 2 * first + 1)):
            assert leaves[2 * (node - first)] == 0, "an undone node sends nobody left"
    assert 0 < len(undone) < 15


def test_what_was_split_above_stays():
    generator = np.random.default_rng(9)
    above = TreeStructure.root().deeper(random_tests(generator, 1))
    whole = above.deeper(random_tests(generator, 2))
    structure, may_split = without_light_splits(whole, np.array([9.0, 1.0, 5.0, 5.0]), np.ones(2, bool), 5.0)
    for name in ("feature", "split", "equals", "besides"):
        np.testing.assert_array_equal(getattr(structure, name)[[0, 2]], getattr(whole, name)[[0, 2]])
    assert may_split.tolist() == [False, False, True, True]
    left = structure.lowered()[1][1], structure.lowered()[2][1]
    assert left == (0, -1), "no cell goes left at the undone node"
