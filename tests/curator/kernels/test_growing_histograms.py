"""Sums of a growing tree: by numpy, over several chunks and lines of bins, whatever rows contribute."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.curator.kernels import histograms
from ledgerwood.curator.kernels.growing_histograms import BinRows, LevelSums
from ledgerwood.curator.queries.splits import tests as split_tests
from ledgerwood.curator.views.tree_rows import Buffers
from ledgerwood.ensemble import FeatureCells, SplitTests, TreeStructure
from ledgerwood.threads import threads

STEPS = 2**20


def grown(generator, cells, n_cells, depth):
    """Structures of depth 0, 1, ..., each one level more than the one before."""
    found = [TreeStructure.root()]
    for level in range(depth):
        n = 2**level
        equals = generator.random(n) < 0.2
        split = generator.integers(0, n_cells, n).astype(np.uint16)
        also = np.where(~equals & (generator.random(n) < 0.3), n_cells - 1, -1).astype(np.int32)
        tests = SplitTests(
            feature=generator.integers(0, len(cells), n).astype(np.int32), split=split, equals=equals, besides=also
        )
        found.append(found[-1].deeper(tests))
    return found


def by_numpy(structure, cells, binned, offsets, firsts, seconds):
    """int64 (n_leaves, n_bins, 2), each row and feature by itself."""
    sums = np.zeros((structure.n_leaves, int(offsets[-1]), 2), dtype=np.int64)
    leaves = np.zeros(cells.shape[1], dtype=np.int64)
    feature, below, besides, _ = structure.lowered()
    for level in range(structure.depth):
        node = 2**level - 1 + leaves
        cell = cells[feature[node], np.arange(cells.shape[1])].astype(np.int64)
        leaves = 2 * leaves + ~((cell < below[node]) | (cell == besides[node]))
    for place, column in enumerate(binned):
        at = leaves, offsets[place] + column.astype(np.int64)
        np.add.at(sums[..., 0], at, firsts)
        np.add.at(sums[..., 1], at, seconds)
    return sums


def checked(cells, n_cells, firsts, seconds, depth, seed):
    """Compares every level with numpy, grown in turn and from nothing."""
    f = len(cells)
    offsets = np.arange(f + 1) * n_cells
    bins = np.broadcast_to(np.arange(n_cells), (f, n_cells))
    rows = BinRows(offsets, cells, np.arange(f), bins)
    largest = int(max(firsts.max(initial=0), 1)), int(max(np.abs(seconds).max(initial=0), 1))
    levels = LevelSums(rows, firsts, seconds, largest)
    structures = grown(np.random.default_rng(seed), cells, n_cells, depth)
    for structure in structures:
        wanted = by_numpy(structure, cells, cells, offsets, firsts, seconds)
        np.testing.assert_array_equal(levels.of(structure, cells), wanted)
    fresh = LevelSums(rows, firsts, seconds, largest)
    np.testing.assert_array_equal(fresh.of(structures[-1], cells), wanted)
    # Another tree after this one: nothing of the first is left.
    np.testing.assert_array_equal(
        fresh.of(structures[0], cells), by_numpy(structures[0], cells, cells, offsets, firsts, seconds)
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40), st.integers(1, 9), st.integers(1, 7), st.integers(0, 3), st.sampled_from((1, STEPS, 2**28)),
    st.booleans(), st.integers(0, 2**16),
)  # fmt: skip
def test_few_rows_of_any_shape(n, f, n_cells, depth, largest, counted, seed):
    generator = np.random.default_rng(seed)
    cells = generator.integers(0, n_cells, (f, n)).astype(np.uint8)
    firsts = generator.choice([0, 1] if counted else [0, 1, STEPS], n).astype(np.int32)
    seconds = generator.choice([-largest, 0, largest], n).astype(np.int32)
    checked(cells, n_cells, firsts, seconds, depth, seed)


@pytest.mark.parametrize(("n", "f", "n_cells"), [(2 * histograms.CHUNK + 3, 3, 4), (300, 130, 3), (300, 65, 256)])
def test_several_chunks_of_rows_and_lines_of_bins(n, f, n_cells, monkeypatch):
    monkeypatch.setattr("ledgerwood.routing.THREADED_ROWS", 0)
    generator = np.random.default_rng(n)
    cells = generator.integers(0, n_cells, (f, n)).astype(np.uint8)
    firsts = generator.integers(0, STEPS + 1, n).astype(np.int32)
    seconds = generator.integers(-STEPS, STEPS + 1, n).astype(np.int32)
    with threads(3):
        checked(cells, n_cells, firsts, seconds, 3, 1)


def test_bins_stand_for_several_cells_and_some_features_are_left_out():
    generator = np.random.default_rng(5)
    cells = generator.integers(0, 1000, (4, 500)).astype(np.uint16)
    features, bins = np.array([3, 1]), np.minimum(np.arange(900) // 250, np.array([[3], [2]]))
    offsets = np.array([0, 4, 7])
    binned = np.stack([bins[place][np.minimum(cells[feature], 899)] for place, feature in enumerate(features)])
    firsts, seconds = np.ones(500, np.int32), generator.integers(-9, 10, 500).astype(np.int32)
    levels = LevelSums(BinRows(offsets, cells, features, bins), firsts, seconds, (1, 9))
    for structure in grown(generator, cells, 1000, 3):
        wanted = by_numpy(structure, cells, binned, offsets, firsts, seconds)
        np.testing.assert_array_equal(levels.of(structure, cells), wanted)


def test_memory_of_what_nobody_reads_is_taken_and_leaves_nothing_behind():
    """All rows, then a sample's, then all again: of tests of other cells, in the same memory."""
    generator = np.random.default_rng(6)
    f, n = 11, 3000
    cells = generator.integers(0, 1000, (f, n)).astype(np.uint16)
    some = np.flatnonzero(generator.random(n) < 0.1)
    room, rows = Buffers(np.zeros).of, None
    for number, chosen in enumerate((np.arange(n), some, some[::2], np.arange(n))):
        bins = np.sort(generator.integers(0, 9, (f, 700)), axis=1)
        bins[:, 0], offsets = 0, np.arange(f + 1) * 9
        binned = np.stack([bins[place][np.minimum(column, 699)] for place, column in enumerate(cells)])
        before = rows
        every = len(chosen) == n
        asked = np.empty(0, np.int64) if every else chosen
        rows = BinRows(offsets, cells, np.arange(f), bins, room, chosen=asked)
        assert rows.complete is every
        assert before is None or np.shares_memory(rows.words, before.words)
        firsts, seconds = np.zeros((2, n), np.int32)
        firsts[chosen], seconds[chosen] = 1, generator.integers(-9, 10, len(chosen))
        levels = LevelSums(rows, firsts, seconds, (1, 9), room)
        for structure in grown(np.random.default_rng(number), cells, 1000, 3):
            wanted = by_numpy(structure, cells, binned, offsets, firsts, seconds)
            np.testing.assert_array_equal(levels.of(structure, cells), wanted)
    more = BinRows(offsets, np.hstack((cells, cells)), np.arange(f), bins, room)
    assert not np.shares_memory(more.words, rows.words)


# ---- cells that no test tells apart ----


@st.composite
def public_tests(draw):
    """Some thresholds and equalities of some features, and a tree of them or of others."""
    cells = [
        FeatureCells(ordered=draw(st.integers(0, 9)), equality=tuple(draw(st.sets(st.integers(9, 12), max_size=2))))
        for _ in range(3)
    ]
    every = SplitTests.every([FeatureCells(ordered=5, equality=()), *cells])
    pick = st.lists(st.integers(0, len(every) - 1), min_size=1, max_size=12)
    tests = every.taken(np.array(draw(pick)))
    structure = TreeStructure.root()
    for level in range(draw(st.integers(0, 3))):
        own = draw(st.lists(st.integers(-1, len(every) - 1), min_size=2**level, max_size=2**level))
        structure = structure.deeper(every.taken(np.array(own)))
    return tests, structure


@settings(max_examples=150, deadline=None)
@given(public_tests())
def test_joined_cells_tell_apart_what_single_ones_do(drawn):
    tests, structure = drawn
    single = split_tests.TestedCells.of(tests)
    open_cells = single.reached(structure)
    below = np.concatenate((np.zeros((len(open_cells), 1), int), np.cumsum(open_cells, axis=1)), axis=1)
    left = below[:, single.stop] - below[:, single.start]
    left += np.where(single.besides < 0, 0, open_cells[:, single.besides])
    everywhere = below[:, single.last + 1] - below[:, single.start]
    np.testing.assert_array_equal(split_tests.open_tests(tests, structure), (left > 0) & (left < everywhere))
    joined = single.joined()
    assert joined.total <= single.total
    # A row of each cell, and one beyond: it goes left in both, or in neither.
    lookup = joined.lookup()
    for test in range(len(tests)):
        place = int(np.searchsorted(single.features, tests.feature[test]))
        for cell in range(15):
            sides = []
            for cells, its in (
                (single, min(cell, int(np.diff(single.offsets)[place]) - 1)),
                (joined, int(lookup[place, min(cell, lookup.shape[1] - 1)])),
            ):
                at = cells.offsets[place] + its
                sides.append(cells.start[test] <= at < cells.stop[test] or at == cells.besides[test])
            assert sides[0] == sides[1]
