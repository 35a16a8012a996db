"""The federated estimators: several classes, saved models, odd input, every preset."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import FederatedGBDTClassifier, FederatedGBDTRegressor, PrivacyStatement
from ledgerwood.trainers.base.forests import stacked, unstacked

THREE = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", ("a", "b", "c")))
TWO = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", (0, 1)))
NUMBER = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Numeric("y", 0.0, 1.0))
PRESETS = [
    "recommended", "paper", "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton", "tr_newton_ih",
    "tr_batched_ih_ebm",
]  # fmt: skip


def thirds(n=900):
    X = np.random.default_rng(0).uniform(0, 1, (n, 3))
    return X, np.array(["a", "b", "c"])[np.minimum((3 * X[:, 1]).astype(int), 2)]


@pytest.fixture(scope="module")
def three():
    X, y = thirds()
    return FederatedGBDTClassifier(
        epsilon=1e4, delta=1e-6, schema=THREE, n_estimators=20, preset="tr_batched_ih_ebm", random_state=0
    ).fit(X, y)


@pytest.mark.slow  # many fits and plans
def test_three_classes_are_learned_and_priced_three_times(three):
    X, y = thirds()
    assert (three.predict(X) == y).mean() > 0.9
    assert three.plan_.query_counts.weights == 3 * 20
    assert three.plan_.query_counts.recalibration == 3
    assert len(three.ensemble_.trees) == 60
    probabilities = three.predict_proba(X)
    assert probabilities.shape == (900, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(three.classes_[probabilities.argmax(axis=1)], three.predict(X))
    assert three.feature_importances_.argmax() == 1


def test_a_model_of_three_classes_is_saved_and_read(three, tmp_path):
    X, _ = thirds(50)
    three.save(tmp_path / "model")
    read = FederatedGBDTClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(read.decision_function(X), three.decision_function(X))
    assert read.plan_ == three.plan_


def test_forests_are_put_together_and_taken_apart(three):
    cells = np.random.default_rng(1).integers(0, 32, (3, 40)).astype(np.uint16)
    forests = unstacked(three.ensemble_, 3)
    moved = [lw_ensemble(forest, 0.5 * place) for place, forest in enumerate(forests)]
    for place, forest in enumerate(unstacked(stacked(moved), 3)):
        np.testing.assert_allclose(forest.scores(cells), forests[place].scores(cells) + 0.5 * place)


def lw_ensemble(forest, score):
    return type(forest)(initial_score=score, trees=forest.trees)


@pytest.mark.slow_after(2)  # many fits and plans
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_within_its_budget(preset):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(0, 1, (40, 3)), generator.integers(0, 2, 40)
    for estimator, schema, target in (
        (FederatedGBDTClassifier, TWO, y),
        (FederatedGBDTRegressor, NUMBER, y.astype(float)),
    ):
        model = estimator(epsilon=1.0, delta=1e-6, schema=schema, preset=preset, n_estimators=3, expected_rows=40)
        model.fit(X, target)
        assert 0.0 < model.privacy_.epsilon <= 1.0
        assert isinstance(model.privacy_, PrivacyStatement)
        assert np.isfinite(model.predict(X).astype(float)).all()


def test_the_paper_has_its_own_constants():
    # Maddock et al. 2022, their comparison's "batched boosting, IH (s = 5), EBM": of its T 25 to 300 and p .25 or 1
    # one pair; all else is fixed there.
    plan = FederatedGBDTClassifier(preset="paper").make_plan(TWO.resolved(3))
    assert (plan.max_depth, plan.n_candidates, plan.refinements, plan.features_per_tree) == (4, 32, 5, 1)
    assert (plan.split_method, plan.update, plan.candidates) == ("totally_random", "newton", "iterative_hessian")
    assert (plan.learning_rate, plan.reg_lambda, plan.max_delta_step, plan.curvature_scale) == (0.3, 1.0, 2.0, 1.0)
    assert (plan.n_estimators, plan.trees_per_batch, plan.feature_cycle) == (200, 50, "windows")
    assert (plan.clip, plan.pooling, plan.recalibrate, plan.initial_score) == (1.0, 0.0, False, "zero")


def test_our_constants_are_another_preset_of_the_same_components():
    paper, ours = (
        FederatedGBDTClassifier(preset=name).make_plan(TWO.resolved(3)) for name in ("paper", "tr_batched_ih_ebm")
    )
    for name in ("split_method", "update", "candidates", "refinements", "features_per_tree", "max_depth"):
        assert getattr(paper, name) == getattr(ours, name)
    assert (ours.n_estimators, ours.trees_per_batch, ours.learning_rate) == (400, 20, 1.0)
    assert ours.reg_lambda is None
    assert ours.recalibrate


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "best"}, "preset"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"trees_per_batch": 0}, "trees_per_batch"),
        ({"trees_per_batch": 2.5}, "trees_per_batch"),
        ({"full_cycles": "yes"}, "full_cycles"),
        ({"feature_cycle": "spiral"}, "feature_cycle"),
        ({"candidates": "sketch"}, "candidates='sketch'"),
        ({"max_depth": 21}, "max_depth"),
        ({"expected_rows": 0}, "expected_rows"),
    ],
)
def test_parameters_out_of_bounds_are_refused(options, message):
    with pytest.raises(InvalidParameter, match=message):
        FederatedGBDTClassifier(schema=TWO, **options).fit(np.full((4, 3), 0.5), [0, 1, 0, 1])


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("split_method", ["histogram", "partially_random", "totally_random"])
@pytest.mark.parametrize("odd", ["one class", "one row", "a missing column", "one category", "depth 0"])
def test_odd_tables(odd, split_method):
    generator = np.random.default_rng(0)
    X, y, depth = generator.uniform(0, 1, (8, 3)), generator.integers(0, 2, 8), 2
    schema = TWO
    if odd == "one class":
        y = np.ones(8, dtype=int)
    if odd == "one row":
        X, y = X[:1], y[:1]
    if odd == "a missing column":
        schema = lw.Schema(
            features=tuple(lw.Numeric(name, 0.0, 1.0, missing=True) for name in "uvw"), target=TWO.target
        )
        X[:, 1] = np.nan
    if odd == "one category":
        schema = lw.Schema(features=(lw.Categorical("u", ("x",)),), target=TWO.target)
        X = np.array([["x"]] * 8, dtype=object)
    if odd == "depth 0":
        depth = 0
    model = FederatedGBDTClassifier(
        schema=schema, n_estimators=2, max_depth=depth, split_method=split_method, candidates="iterative_hessian"
    ).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_label_outside_the_classes_contributes_nothing():
    options = {"schema": TWO, "random_state": 1, "n_estimators": 2}
    more = FederatedGBDTClassifier(**options).fit(np.full((3, 3), 0.5), [0, 1, 2])
    less = FederatedGBDTClassifier(**options).fit(np.full((2, 3), 0.5), [0, 1])
    np.testing.assert_array_equal(more.predict_proba(np.eye(3)), less.predict_proba(np.eye(3)))


def test_cycles_are_counted():
    model = FederatedGBDTClassifier(n_estimators=4, full_cycles=True, features_per_tree=2)
    assert model.make_plan(TWO.resolved(3)).trees == 4 * 2
