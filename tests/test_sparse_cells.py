"""Sparse cells beside the same cells in an array: columns, parts, lookups, and the leaves of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import sparse_cells
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.sparse_cells import SparseCells, of_rows, spelled_out


def thinned(cells, usual):
    """Sparse cells of an array; a cell that is usual may be stored all the same."""
    kept = [
        np.flatnonzero((column != own) | (np.arange(len(column)) % 5 == 0))
        for column, own in zip(cells, usual, strict=True)
    ]
    return SparseCells(
        cells.shape[1],
        np.cumsum([0, *map(len, kept)]),
        np.concatenate(kept).astype(np.int32),
        np.concatenate([column[rows] for column, rows in zip(cells, kept, strict=True)]),
        np.asarray(usual),
    )


@st.composite
def tables(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_features, n_rows = draw(st.integers(1, 6)), draw(st.integers(0, 60))
    kind, most = draw(st.sampled_from([(np.uint8, 9), (np.uint8, 256), (np.uint16, 700)]))
    usual = generator.integers(0, most, n_features).astype(kind)
    other = generator.integers(0, most, (n_features, n_rows)).astype(kind)
    return np.where(generator.random(other.shape) < 0.3, other, usual[:, np.newaxis]), usual, generator


def tree(generator, n_features, depth, most=9, sets=False):
    nodes = 2**depth - 1
    equals = np.full(nodes, False) if sets else generator.random(nodes) < 0.3
    split = np.zeros(nodes, np.int64) if sets else generator.integers(1, most, nodes)
    besides = np.where(equals | (generator.random(nodes) < 0.5), -1, np.minimum(split + 1, most))
    return TreeStructure(
        feature=generator.integers(0, n_features, nodes).astype(np.int32),
        split=split.astype(np.uint16),
        equals=equals,
        besides=(np.full(nodes, -2) if sets else besides).astype(np.int32),
        left_sets=generator.random((1, most)) < 0.5 if sets else None,
    )


@given(tables())
@settings(deadline=None, max_examples=40)
def test_cells_are_those_of_the_array(given_table):
    cells, usual, generator = given_table
    sparse = thinned(cells, usual)
    assert (sparse.shape, sparse.dtype, len(sparse)) == (cells.shape, cells.dtype, len(cells))
    np.testing.assert_array_equal(spelled_out(sparse), cells)
    np.testing.assert_array_equal(np.stack(list(sparse)), cells)
    features = generator.permutation(len(cells))[: generator.integers(1, len(cells) + 1)]
    first, end = np.sort(generator.integers(0, cells.shape[1] + 1, 2)).tolist()
    np.testing.assert_array_equal(sparse.columns(features, first, end), cells[features, first:end])
    part = of_rows(sparse, first, end)
    np.testing.assert_array_equal(spelled_out(part), cells[:, first:end])
    np.testing.assert_array_equal(of_rows(cells, first, end), cells[:, first:end])
    lookups = [generator.integers(0, 256, 2 ** (8 * cells.dtype.itemsize)).astype(np.uint8) for _ in features]
    mapped = np.stack([lookup[cells[feature]] for feature, lookup in zip(features, lookups, strict=True)])
    np.testing.assert_array_equal(spelled_out(sparse.mapped(features, lookups)), mapped)
    more = [of_rows(sparse, begin, min(begin + 7, cells.shape[1])) for begin in range(0, cells.shape[1], 7)]
    if more:
        stored = sum(len(each.rows) for each in more)
        whole = more[0].stack_into(more[1:], np.empty(stored, np.int32), np.empty(stored, cells.dtype))
        np.testing.assert_array_equal(spelled_out(whole), cells)


@pytest.mark.parametrize("depth", [0, 1, 3, 8, 9, 17])
@pytest.mark.parametrize("sets", [False, True])
def test_rows_are_routed_as_by_the_array(depth, sets, monkeypatch):
    """Also where rows come in several blocks, and where a leaf's number takes two cells."""
    monkeypatch.setattr(sparse_cells, "BLOCK_CELLS", 100)
    monkeypatch.setattr(sparse_cells, "CHUNK_ROWS", 16)
    generator = np.random.default_rng(depth)
    usual = generator.integers(0, 9, 5).astype(np.uint8)
    other = generator.integers(0, 9, (5, 300)).astype(np.uint8)
    cells = np.where(generator.random(other.shape) < 0.4, other, usual[:, np.newaxis])
    sparse, structure = thinned(cells, usual), tree(generator, 5, depth, sets=sets)
    leaves = structure.route(cells)
    assert len(np.unique(leaves)) > min(depth, 8)
    np.testing.assert_array_equal(structure.route(sparse), leaves)
    routed, (feature, below, besides, left_sets) = structure.over(sparse)
    again = np.zeros(300, dtype=np.int64)
    for _ in range(depth):
        node = again
        cell = routed[feature[node], np.arange(300)].astype(np.int64)
        again = 2 * node + np.where(cell < below[node], 1, 2)
    np.testing.assert_array_equal(again - (2**depth - 1), leaves)
    assert (besides == -1).all()
    assert not left_sets.size
    if depth <= 9:
        values = generator.normal(size=2**depth)
        trees = (Tree(structure=structure, values=values), Tree(structure=tree(generator, 5, 2), values=np.arange(4.0)))
        forest = Ensemble(initial_score=0.25, trees=trees)
        np.testing.assert_array_equal(forest.scores(sparse), forest.scores(cells))


def test_a_feature_that_is_not_there_is_an_index_error():
    with pytest.raises(IndexError):
        thinned(np.zeros((2, 3), np.uint8), [0, 0])[2]
