"""Rows and labels by score: exact sums, shifts as stated."""

import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.curator import ScoreCounts, Table
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter

SCHEMA = lw.Schema.uniform(0.0, 1.0, n_features=1, target=lw.Categorical("y", (0, 1)))
ENSEMBLE = Ensemble(
    initial_score=0.25,
    trees=(
        Tree(
            structure=TreeStructure(
                feature=np.zeros(1, np.int32), split=np.array([2], np.uint16), equals=np.zeros(1, np.bool_)
            ),
            values=np.array([-1.0, 0.75]),
        ),
    ),
)
ALL = np.empty(0, dtype=np.bool_)


def counted(X, y, edges, schema=SCHEMA, **more):
    table = Table.from_data(X, y, schema, loss="logistic", bins=4, **more)
    return table.statistic(ScoreCounts(edges=edges).of(ENSEMBLE), ALL) / 2.0**20


def test_each_row_is_in_the_bin_of_its_score():
    X = np.array([[0.1], [0.2], [0.9], [0.7], [0.6]])
    y = np.array([0, 1, 1, 1, 0])
    # Scores are -.75 below one half and 1 above it; one that is an edge is above it.
    np.testing.assert_array_equal(counted(X, y, (-2.0, 0.0, 1.0)), [[0, 0], [2, 0], [0, 0], [3, 1]])


def test_more_rows_than_a_block():
    generator = np.random.default_rng(0)
    X, y = generator.uniform(0, 1, (40_000, 1)), generator.integers(0, 2, 40_000)
    high = X[:, 0] >= 0.5
    expected = [[side.sum(), (2 * y[side] - 1).sum()] for side in (~high, high)]
    np.testing.assert_array_equal(counted(X, y, (0.0,)), expected)


def test_weights_are_shares_of_a_row():
    schema = lw.Schema(features=SCHEMA.features, target=SCHEMA.target, weight_bound=2.0)
    X, y = np.array([[0.1], [0.9]]), np.array([0, 1])
    schema = lw.Schema.uniform(0.0, 1.0, n_features=1, target=SCHEMA.target, weight_bound=2.0)
    found = counted(X, y, (0.0,), schema, sample_weight=[1.0, 2.0])
    np.testing.assert_array_equal(found, [[0.5, -0.5], [1.0, 1.0]])


@pytest.mark.parametrize("adjacency", list(lw.Adjacency))
def test_no_change_of_one_row_is_beyond_the_stated_norm(adjacency):
    norm = ScoreCounts(edges=(0.0,)).of(ENSEMBLE).sensitivity(adjacency).l2((1.0, 1.0))
    rows = [None, *((x, y) for x in (0.1, 0.9) for y in (0, 1))]

    def value(row):
        others = [(0.3, 1), row] if row is not None else [(0.3, 1)]
        return counted(np.array([[x] for x, _ in others]), np.array([y for _, y in others]), (0.0,))

    replace = adjacency is lw.Adjacency.REPLACE_ONE
    pairs = [(a, b) for a in rows for b in rows if replace == (a is not None and b is not None)]
    moved = max(np.linalg.norm(value(a) - value(b)) for a, b in pairs if a is not None or b is not None)
    assert moved == pytest.approx(norm)
    assert norm == pytest.approx(2.0 if replace else math.sqrt(2.0))


@pytest.mark.parametrize("edges", [(), (1.0, 1.0), (2.0, 1.0), (float("nan"),), tuple(range(5000))], ids=len)
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(InvalidParameter, match="edges"):
        ScoreCounts(edges=edges).of(ENSEMBLE)
