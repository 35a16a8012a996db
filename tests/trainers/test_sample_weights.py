"""Weights through a whole fit: what is refused before anything is spent, what a weight does, what it costs."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone, is_regressor

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    PrivateSearch,
    SGBDTClassifier,
    SGBDTRegressor,
)

W = 8
NUMBERS = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 10), weight_bound=W)
CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", (0, 1)), weight_bound=W)
PLAIN = dataclasses.replace(NUMBERS, weight_bound=None)
GENERATOR = np.random.default_rng(0)
N = 300
X = GENERATOR.uniform(0, 1, (N, 2))
Y = 10 * X[:, 0]
WEIGHTS = GENERATOR.integers(0, W + 1, N)
SMALL = {"n_estimators": 5, "max_depth": 2, "epsilon": 5.0, "delta": 1e-6}


def model_of(kind, **options):
    schema = NUMBERS if is_regressor(kind()) else CLASSES
    return kind(**({"schema": schema, "random_state": 3} | SMALL | options))


def labels(kind, y=Y):
    return y if is_regressor(kind()) else (y > 4).astype(int)


def values(model):
    return model.ensemble_.to_arrays()["values"]


KINDS = [
    (SGBDTRegressor, {}),
    (SGBDTRegressor, {"leaf_noise": "static", "reg_lambda": 0.5, "initial_score": "laplace"}),
    (SGBDTRegressor, {"extra_trees": 4, "large_gradients": "drop"}),
    (SGBDTClassifier, {}),
    (SGBDTClassifier, {"leaf_statistic": "moments", "adjacency": "replace-one"}),
    (DPBoostRegressor, {"delta": 0.0}),
    (
        DPBoostClassifier,
        {"preset": "seq", "max_bins": 16},
    ),  # without a grid: tests/curator/queries/test_gridless_gains.py
    (DPXGBoostRegressor, {"delta": 0.0, "adjacency": "replace-one"}),
    (DPXGBoostClassifier, {"leaf_release": "ratio"}),
]


@pytest.mark.slow_after(3)  # two fits of each system
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_rows_of_weight_zero_are_not_there(kind, options):
    """With the noise held fixed: the same values, bit for bit."""
    weights = np.where(np.arange(N) % 3 == 0, 0, WEIGHTS)
    model = model_of(kind, **options).fit(X, labels(kind), sample_weight=weights)
    kept = weights > 0
    without = clone(model).fit(X[kept], labels(kind)[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(values(model), values(without))
    assert model.ensemble_.initial_score == without.ensemble_.initial_score
    # Nothing else tells of a weight: price, ledger and statement are those of any weights.
    assert model.ledger_ == without.ledger_
    assert model.privacy_ == without.privacy_


@pytest.mark.slow_after(2)  # two fits of each system
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_weight_is_a_number_of_rows(kind, options):
    """Up to the truncation of each weighted gradient, of 2**-20. A filter's rows pay each for itself: there not."""
    model = model_of(kind, **options | ({"extra_trees": None} if "extra_trees" in options else {}))
    model.fit(X, labels(kind), sample_weight=WEIGHTS)
    again = clone(model).fit(np.repeat(X, WEIGHTS, axis=0), np.repeat(labels(kind), WEIGHTS))
    np.testing.assert_allclose(values(model), values(again), rtol=0, atol=1e-4)
    assert not np.array_equal(values(model), values(clone(model).fit(X, labels(kind))))


def test_all_weights_at_the_bound_are_no_weights():
    """The same releases as without weights, at the same price."""
    weighted = model_of(SGBDTRegressor).fit(X, Y, sample_weight=np.full(N, W))
    plain = model_of(SGBDTRegressor, schema=PLAIN).fit(X, Y)
    np.testing.assert_array_equal(values(weighted), values(plain))
    assert weighted.ledger_ == plain.ledger_


def test_a_fit_with_weights_learns():
    weights = np.where(X[:, 1] < 0.5, W, 0)
    y = np.where(X[:, 1] < 0.5, Y, 10 - Y)  # what does not count says the contrary
    options = {"epsilon": 100.0, "n_estimators": 60, "max_depth": 2, "random_state": 0}
    model = model_of(SGBDTRegressor, **options).fit(X, y, sample_weight=weights)
    assert np.corrcoef(model.predict(X), Y)[0, 1] > 0.8


def refused(error, words, *, schema=NUMBERS, **arguments):
    ledger = Ledger(Budget(epsilon=5.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    before, model = ledger.entries, model_of(SGBDTRegressor, schema=schema)
    with pytest.raises(error, match=words):
        model.fit(X, Y, ledger=ledger, **arguments)
    assert ledger.entries == before
    assert "ensemble_" not in vars(model)


def test_weights_that_do_not_fit_cost_nothing():
    for weights, words in (
        (WEIGHTS[1:], "X and sample_weight differ"),
        (np.array(["1"] * N), "declared to hold numbers"),
        (np.ones((N, 2)), "1d array"),
    ):
        refused(SchemaError, words, sample_weight=weights)
    refused(SchemaError, "declare the largest weight", schema=PLAIN, sample_weight=WEIGHTS)
    refused(SchemaError, "an estimated schema has none", schema=None, sample_weight=WEIGHTS)
    refused(SchemaError, "every row weight 1", schema=dataclasses.replace(NUMBERS, weight_bound=0.5))


def test_weights_in_the_place_of_a_ledger_are_told_where_to_go():
    with pytest.raises(InvalidParameter, match="not ndarray; weights go to sample_weight="):
        model_of(SGBDTRegressor).fit(X, Y, WEIGHTS)


def test_static_leaves_need_more_noise_for_weights_and_others_do_not():
    for options, more in (({}, 1.0), ({"leaf_noise": "static", "reg_lambda": 0.1}, 1.4117)):
        plain, weighted = (
            model_of(SGBDTRegressor, schema=schema, **options).make_plan(schema) for schema in (PLAIN, NUMBERS)
        )
        assert (plain.weighted, weighted.weighted) == (False, True)
        assert weighted.noise_multiplier == pytest.approx(plain.noise_multiplier, rel=1e-9)
        if options:
            # 2 (1 + l) / (1 + l + sqrt(l (l + 2))), which is nearly 2 for a small lambda.
            assert weighted.leaf_mechanism.stddev / plain.leaf_mechanism.stddev == pytest.approx(more, rel=1e-4)
        else:
            assert weighted.leaf_mechanism.stddevs == plain.leaf_mechanism.stddevs


def test_the_statement_names_what_weights_assume():
    with_weights = model_of(SGBDTRegressor).fit(X, Y, sample_weight=WEIGHTS)
    without = model_of(SGBDTRegressor).fit(X, Y)
    (more,) = set(with_weights.privacy_.assumptions) - set(without.privacy_.assumptions)
    assert "neither normalised nor balanced" in more


def test_a_saved_model_keeps_the_bound(tmp_path):
    model = model_of(SGBDTRegressor).fit(X, Y, sample_weight=WEIGHTS)
    model.save(tmp_path / "model")
    loaded = SGBDTRegressor.load(tmp_path / "model")
    assert loaded.schema_ == loaded.schema == NUMBERS
    assert loaded.plan_ == model.plan_
    assert loaded.plan_.weighted
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.slow  # many fits and plans
def test_a_search_takes_weights():
    candidates = [{"n_estimators": 2}, {"n_estimators": 4, "leaf_noise": "static", "reg_lambda": 1.0}]
    weights = np.where(np.arange(N) % 3 == 0, 0, W)
    kept = weights > 0
    common = {"epsilon": 5.0, "delta": 1e-5, "schema": NUMBERS, "random_state": 7}
    model = PrivateSearch(SGBDTRegressor(), candidates, **common).fit(X, Y, sample_weight=weights)
    again = clone(model).fit(X[kept], Y[kept], sample_weight=weights[kept])
    assert model.best_score_ == again.best_score_
    np.testing.assert_array_equal(values(model), values(again))


def test_a_stream_has_no_weights():
    keys = np.arange(N)
    model = model_of(SGBDTRegressor)
    with pytest.raises(SchemaError, match=r"weight_bound=8\.0: the rows of a stream have no weights"):
        model.partial_fit(X, Y, keys=keys)
    assert "ledger_" not in vars(model)
    # A bound of 1, which every row reaches, changes nothing.
    one = model_of(SGBDTRegressor, schema=dataclasses.replace(NUMBERS, weight_bound=1)).partial_fit(X, Y, keys=keys)
    plain = model_of(SGBDTRegressor, schema=PLAIN).partial_fit(X, Y, keys=keys)
    np.testing.assert_array_equal(values(one), values(plain))
