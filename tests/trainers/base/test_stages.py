"""Predictions after each tree, and logarithms of probabilities."""

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import SchemaError
from ledgerwood.trainers import PrivateBoostingClassifier, PrivaTreeClassifier, SGBDTClassifier, SGBDTRegressor
from tests.verification.testing.test_trainer_kit import MeanRegressor

X = np.random.default_rng(0).uniform(size=(120, 2))
NUMBERS = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Numeric("y", 0, 4))
TWO = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", ("no", "yes"), weights=(1.0, 3.0)))
THREE = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", ("a", "b", "c")))
LETTERS = np.array(["a", "b", "c"])[(3 * X[:, 1]).astype(int)]


def fitted(model, y):
    with pytest.warns(lw.PrivacyWarning):
        return model.fit(X, y)


def first_trees(model, stages, forests=1):
    """Returns a copy that keeps a number of trees of each forest."""
    trees = model.ensemble_.trees
    sizes = [len(trees) // forests + (place < len(trees) % forests) for place in range(forests)]
    starts = np.cumsum([0, *sizes[:-1]])
    kept = [each for start in starts for each in trees[start : start + stages]]
    short = type(model)(**model.get_params())
    vars(short).update(vars(model))
    short.ensemble_ = type(model.ensemble_)(
        initial_score=model.ensemble_.initial_score, trees=tuple(kept), class_scores=model.ensemble_.class_scores
    )
    return short


def test_a_regressor_s_stages_end_with_its_prediction():
    model = fitted(SGBDTRegressor(schema=NUMBERS, random_state=0, n_estimators=5), 4.0 * X[:, 0])
    stages = list(model.staged_predict(X))
    assert len(stages) == 5
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(stages[1], first_trees(model, 2).predict(X))
    assert not np.array_equal(stages[0], stages[1])


@pytest.mark.parametrize(
    ("kind", "schema", "y", "forests"),
    [
        (SGBDTClassifier, TWO, np.where(X[:, 0] > 0.5, "yes", "no"), 1),
        (SGBDTClassifier, THREE, LETTERS, 3),
        (PrivateBoostingClassifier, THREE, LETTERS, 1),
    ],
)
def test_a_classifier_s_stages_are_those_of_its_first_trees(kind, schema, y, forests):
    model = fitted(kind(schema=schema, random_state=0, n_estimators=4, epsilon=5.0), y)
    count = len(model.ensemble_.trees) // forests
    for name in ("decision_function", "predict_proba", "predict"):
        stages = list(getattr(model, f"staged_{name}")(X))
        assert len(stages) == count
        np.testing.assert_array_equal(stages[-1], getattr(model, name)(X))
        np.testing.assert_array_equal(stages[0], getattr(first_trees(model, 1, forests), name)(X))


def test_logarithms_of_probabilities():
    model = fitted(SGBDTClassifier(schema=TWO, random_state=0, n_estimators=2), np.where(X[:, 0] > 0.5, "yes", "no"))
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    tree = fitted(PrivaTreeClassifier(schema=THREE, random_state=0), LETTERS)
    found = tree.predict_log_proba(X)
    assert set(found.ravel().tolist()) == {0.0, -np.inf}
    np.testing.assert_array_equal(found == 0.0, tree.predict_proba(X) == 1.0)


def test_stages_are_of_trees_and_of_rows_in_memory(tmp_path):
    assert not hasattr(MeanRegressor(), "staged_predict")
    assert not hasattr(SGBDTRegressor(), "staged_predict_proba")
    model = fitted(SGBDTRegressor(schema=NUMBERS, random_state=0, n_estimators=2), 4.0 * X[:, 0])
    path = tmp_path / "rows.csv"
    np.savetxt(path, X, delimiter=",", header="x0,x1", comments="")
    with pytest.raises(SchemaError, match="model.batches"):
        model.staged_predict(str(path))
