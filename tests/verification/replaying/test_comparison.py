"""Public values compared in depth: equal is equal to the last bit, and what nobody looked into is refused."""

import functools
import math
import threading

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import ReplayFailed
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.replaying.comparison import difference

A = Adjacency.ADD_REMOVE


def ensemble(value=0.25, split=3):
    structure = TreeStructure(
        feature=np.zeros(1, np.int32), split=np.array([split], np.uint16), equals=np.zeros(1, np.bool_)
    )
    return Ensemble(initial_score=0.5, trees=(Tree(structure=structure, values=np.array([0.0, value])),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: (1, "a", None, True, 2.5, b"x", Adjacency.ADD_REMOVE, float, range(3)),
        lambda: {"a": [1, 2], "b": {"c": (3.0,)}, "d": {1, 2}},
        lambda: np.array([1.0, np.nan, -0.0]),
        lambda: np.array(["a", None, 3.0], dtype=object),
        ensemble,
        lambda: lw.Composed((lw.GaussianEvent(noise_multiplier=2.0, adjacency=A),)),
        lambda: SGBDTRegressor(n_estimators=3),
        lambda: Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW),
        lambda: (np.float64(0.1), np.int32(3)),
    ],
)
def test_a_value_made_twice_is_the_same(make):
    assert difference(make(), make(), "it") is None


@pytest.mark.parametrize(
    ("first", "second", "where"),
    [
        (0.0, -0.0, "it"),
        (0.1, math.nextafter(0.1, 1.0), "it"),
        (1, True, "it"),
        (1, 1.0, "it"),
        ([1, 2], (1, 2), "it"),
        ([1, 2], [1, 3], "it[1]"),
        ([1, 2], [1, 2, 3], "it"),
        ({"a": 1}, {"a": 2}, "it['a']"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "it"),
        ({"a": 1}, {"a": 1, "b": 1}, "it"),
        ({1, 2}, {1, 3}, "it"),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 2**-51]), "it[1]"),
        (np.array([0.0]), np.array([-0.0]), "it[0]"),
        (np.array([1, 2]), np.array([1, 2], np.int32), "it"),
        (np.array([1, 2]), np.array([[1, 2]]), "it"),
        (np.array([1, "a"], object), np.array([1, "b"], object), "it[1]"),
        (np.float64(1.0), np.float64(2.0), "it"),
        (ensemble(), ensemble(value=0.5), "it.trees[0].values[1]"),
        (ensemble(), ensemble(split=4), "it.trees[0].structure.split[0]"),
        (SGBDTRegressor(n_estimators=3), SGBDTRegressor(n_estimators=4), "it.n_estimators"),
        (Budget(epsilon=1.0, delta=0.0, adjacency=A), Budget(epsilon=2.0, delta=0.0, adjacency=A), "it.epsilon"),
    ],
)
def test_the_first_difference_is_named(first, second, where):
    found = difference(first, second, "it")
    assert found is not None
    assert found[0] == where
    assert difference(second, first, "it") == (where, found[2], found[1])


def test_ledgers_are_compared_by_their_entries():
    ledgers = [Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW) for _ in range(2)]
    for ledger, epsilon in zip(ledgers, (0.1, 0.2), strict=True):
        ledger.spend(lw.PureEvent(epsilon=epsilon, adjacency=A), purpose="a count")
    assert difference(*ledgers, "ledger")[0] == "ledger.entries[1].hash"


def test_what_cannot_be_looked_into_is_refused():
    for make in (threading.Lock, lambda: (x for x in ()), lambda: functools.partial(print), object):
        with pytest.raises(ReplayFailed, match="which a replay cannot look into"):
            difference([make()], [make()], "it")
    one = object()
    assert difference(one, one, "it") is None


def test_a_long_value_is_cut_in_the_message():
    found = difference("a" * 300, "b" * 300, "it")
    assert len(found[1]) == 200


def made(held, default=0):
    def function(value, more=default):
        return value + held + more

    return function


def test_closures_of_one_function_are_compared_by_what_they_hold() -> None:
    assert difference(made(np.arange(3)), made(np.arange(3)), "f") is None
    assert difference(made(1), made(2), "f") == ("f.held", "1", "2")
    assert difference(made(1, 3), made(1, 4), "f") == ("f.defaults[0]", "3", "4")
    with pytest.raises(ReplayFailed, match="not the same function"):
        difference(made(1), made, "f")


def test_what_a_fit_has_set_on_an_estimator_is_compared_though_it_is_no_field():
    one, other = SGBDTRegressor(), SGBDTRegressor()
    assert difference(one, other, "model") is None
    one.ensemble_, other.ensemble_ = Ensemble(initial_score=0.0), Ensemble(initial_score=0.5)
    assert difference(one, other, "model") == ("model.ensemble_.initial_score", "0.0", "0.5")
