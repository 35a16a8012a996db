"""Neighbouring data: which row is which, and the rows that move most."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.sensitivity.domains import (
    UNSEEN,
    Neighbour,
    added,
    duplicated,
    permuted,
    removed,
    replaced,
    worst_rows,
)

A, Z, R = Adjacency
X = np.array([[1, "a"], [2, "b"], [3, "c"]], dtype=object)
Y = np.array([0.1, 0.2, 0.3])
W = np.array([1.0, 0.5, 0.25])
DATA = (X, Y, W)
CASES = [
    (added(DATA, [4, "d"], 0.4, 0.1), "added", 3, None),
    (added(DATA, [4, "d"], 0.4, 0.1, at=1), "added", 1, None),
    (removed(DATA, 1), "removed", None, 1),
    (replaced(DATA, 2, [4, "d"], 0.4, 0.1), "replaced", 2, 2),
    (duplicated(DATA, 1), "added", 1, None),
    (permuted(DATA, np.random.default_rng(1)), "permuted", None, None),
]


@pytest.mark.parametrize(("neighbour", "change", "new", "gone"), CASES)
def test_the_rows_of_both_are_where_it_says(neighbour, change, new, gone):
    assert (neighbour.change, neighbour.new, neighbour.gone) == (change, new, gone)
    assert {len(array) for array in neighbour.data} == {len(neighbour.origin)}
    for place, origin in enumerate(neighbour.origin):
        if origin != -1:
            for theirs, mine in zip(neighbour.data, DATA, strict=True):
                np.testing.assert_array_equal(theirs[place], mine[origin])
    if new is not None and neighbour is not CASES[4][0]:
        assert neighbour.data[0][new].tolist() == [4, "d"]
        assert (neighbour.data[1][new], neighbour.data[2][new]) == (0.4, 0.1)


def test_the_other_data_stay_as_they_are():
    assert X.tolist() == [[1, "a"], [2, "b"], [3, "c"]]
    assert (Y.tolist(), W.tolist()) == ([0.1, 0.2, 0.3], [1.0, 0.5, 0.25])


def test_a_duplicate_is_there_twice():
    data = CASES[4][0].data
    assert data[0].tolist() == [[1, "a"], [2, "b"], [2, "b"], [3, "c"]]
    assert data[2].tolist() == [1.0, 0.5, 0.5, 0.25]


@pytest.mark.parametrize(("neighbour", "change", "new", "gone"), CASES)
def test_the_relation_is_held_to_the_change(neighbour, change, new, gone):
    allowed = {"added": {A, Z}, "removed": {A, Z}, "replaced": {R}, "permuted": {A, Z, R}}[change]
    for adjacency in Adjacency:
        if adjacency in allowed:
            neighbour.require(adjacency)
        else:
            with pytest.raises(InvalidParameter, match=f"a row is {change}, which makes no neighbours under"):
                neighbour.require(adjacency)


@pytest.mark.parametrize("origin", [(0, 0, 1), (0, 1, 3), (0, 1, -2), (0, 1, -1, -1), (0,), ()])
def test_more_than_one_row_is_no_neighbour(origin):
    with pytest.raises(InvalidParameter):
        Neighbour(data=None, rows=3, origin=origin)


def test_the_worst_rows_of_a_schema():
    schema = lw.Schema(
        features=(Numeric("a", -1.0, 2.0), Categorical("b", ("x", "y")), Numeric("c", 0.0, 1.0, missing=True)),
        target=Categorical("t", ("no", "yes")),
    )
    found = {name: (row, label) for name, row, label in worst_rows(schema)}
    assert found["lowest"] == ([-1.0, "x", 0.0], "yes")
    assert found["highest"] == ([2.0, "y", 1.0], "no")
    assert found["lowest, the other label"] == ([-1.0, "x", 0.0], "no")
    assert found["outside"] == ([1e300, UNSEEN, 1e300], "no")
    row, _ = found["missing"]
    assert row[:2] == [-1.0, "x"]
    assert np.isnan(row[2])
    numeric = lw.Schema(features=(Numeric("a", 0, 1),), target=Numeric("y", -5, 5))
    assert {label for _, _, label in worst_rows(numeric)} == {-5.0, 5.0}
    assert "missing" not in {name for name, _, _ in worst_rows(numeric)}
    with pytest.raises(InvalidParameter, match="declares no target"):
        next(worst_rows(lw.Schema(features=(Numeric("a", 0, 1),))))
