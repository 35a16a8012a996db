"""`neighbours`: pairs that are neighbours, of the right kind, with the rows that move most among them."""

import math

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import SGBDTClassifier
from ledgerwood.verification import neighbours, replay
from ledgerwood.verification.sensitivity.domains import UNSEEN

A, Z, R = Adjacency
SCHEMA = lw.Schema(
    features=(Numeric("a", 0, 1, missing=True), Categorical("kind", ("u", "v"))),
    target=Categorical("class", ("no", "yes")),
)
WEIGHTED = lw.Schema(features=(Numeric("a", -1, 1),), target=Numeric("y", 0, 5), weight_bound=2.0)
ALONE = lw.Schema(features=(Numeric("a", 0, 1), Numeric("b", 0, 1)))
EXAMPLE = (np.array([[0.5, 2.0], [0.25, math.nan]]), np.array([3, 7]), np.array(["x", "y"]))
KINDS = {
    "classes": {"schema": SCHEMA},
    "weights": {"schema": WEIGHTED},
    "no label": {"schema": ALONE},
    "vector": {"bounds": (0.0, 1.0)},
    "matrix": {"columns": 3, "bounds": (0.0, 1.0)},
    "columns of their own": {"bounds": ((0.0, -1.0), (1.0, 5.0))},
    "as an example": {"data": EXAMPLE},
}


def parts(data):
    return data if isinstance(data, tuple) else (data,)


@pytest.mark.slow_after(1)  # draws many pairs of each schema
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ["any", "valid"])
@pytest.mark.parametrize("adjacency", [A, Z, R])
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_drawn_is_a_pair_of_neighbours(kind, rows, adjacency, data):
    first, neighbour = data.draw(neighbours(**KINDS[kind], rows=rows, adjacency=adjacency, max_rows=6, permuted=True))
    neighbour.require(adjacency)
    second = neighbour.data
    assert neighbour.rows == len(parts(first)[0]) <= 7
    assert len(neighbour.origin) == len(parts(second)[0])
    for one, other in zip(parts(first), parts(second), strict=True):
        assert one.shape[1:] == other.shape[1:]
        assert one.dtype.kind == other.dtype.kind or not len(one) or not len(other) or rows == "any"
        for place, origin in enumerate(neighbour.origin):
            if origin != -1:
                assert str(other[place]) == str(one[origin])


@pytest.mark.slow_after(1)  # many replays and searches
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_valid_rows_are_valid(kind, data):
    first, neighbour = data.draw(neighbours(**KINDS[kind]))
    for drawn in (first, neighbour.data):
        if kind == "classes":
            X, y = drawn
            assert all(math.isnan(a) or 0 <= a <= 1 for a in X[:, 0].tolist())
            assert set(X[:, 1].tolist()) <= {"u", "v"}
            assert set(y.tolist()) <= {"no", "yes"}
        elif kind == "weights":
            X, y, weights = drawn
            assert (np.abs(X) <= 1).all()
            assert ((y >= 0) & (y <= 5) & (weights >= 0) & (weights <= 2)).all()
        elif kind == "as an example":
            X, y, names = drawn
            assert ((y >= 3) & (y <= 7)).all()
            assert set(names.tolist()) <= {"x", "y"}
            assert y.dtype == np.int64
        elif kind in {"vector", "matrix", "no label"}:
            assert ((drawn >= 0) & (drawn <= 1)).all()
            assert drawn.ndim == (1 if kind == "vector" else 2)


def values(pair):
    return [str(value) for part in parts(pair[1].data) for value in part.ravel().tolist()]


@pytest.mark.slow_after(2)  # many replays and searches
@pytest.mark.parametrize(
    "condition",
    [
        lambda first, neighbour: len(first[1]) == 0,
        lambda first, neighbour: neighbour.change == "removed" and len(first[1]) == 1,
        lambda first, neighbour: neighbour.change == "added" and neighbour.new == 0 and neighbour.rows > 1,
        lambda first, neighbour: len(first[1]) > 3 and len(set(map(str, zip(*first, strict=True)))) == 1,
        lambda first, neighbour: "nan" in values((first, neighbour)),
        lambda first, neighbour: "inf" in values((first, neighbour)),
        lambda first, neighbour: "1e+300" in values((first, neighbour)),
        lambda first, neighbour: "-0.0" in values((first, neighbour)),
        lambda first, neighbour: UNSEEN in values((first, neighbour)),
        lambda first, neighbour: {"0.0", "1.0", "u", "v", "no", "yes"} <= set(values((first, neighbour))),
    ],
    ids=["empty", "one row", "first", "alike", "nan", "inf", "1e300", "-0", "unseen", "ends"],
)
def test_the_rows_that_move_most_are_drawn(condition):
    search = settings(max_examples=3_000, derandomize=True, database=None, phases=[Phase.generate])
    pair = find(neighbours(SCHEMA, rows="any"), lambda pair: condition(*pair), settings=search)
    assert condition(*pair)


@pytest.mark.slow  # many replays and searches
def test_it_shrinks_to_few_rows():
    search = settings(max_examples=3_000, derandomize=True, database=None)
    first, neighbour = find(neighbours(bounds=(0, 1)), lambda pair: pair[1].data.sum() >= 1.0, settings=search)
    assert len(first) <= 1
    assert neighbour.data.tolist() == [1.0]


@pytest.mark.slow  # many replays and searches
@settings(max_examples=5, phases=[Phase.generate])
@given(pair=neighbours(SCHEMA, min_rows=1, max_rows=8))
def test_a_trainer_is_replayed_on_them(pair):
    found = replay(
        lambda data: SGBDTClassifier(schema=SCHEMA, n_estimators=2, max_depth=1, random_state=1).fit(*data), *pair
    )
    assert found.ok, found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_rows": -1}, "min_rows=-1 must be"),
        ({"min_rows": 3, "max_rows": 2}, "max_rows=2 must be a whole number >= 3"),
        ({"rows": "clean"}, "rows='clean' must be 'any' or 'valid'"),
        ({"bounds": (1, 0)}, "must be low < high"),
        ({"schema": SCHEMA, "bounds": (0, 1)}, "give no bounds and no columns with it"),
        ({"columns": 0}, "columns=0 must be a whole number >= 1"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InvalidParameter, match=message):
        neighbours(**options)
