from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import DPBoostRegressor, FederatedGBDTRegressor, PrivaTreeClassifier, SGBDTRegressor
from ledgerwood.trainers.sgbdt import training as sgbdt
from ledgerwood.verification import structure_depends_on_data

FEATURES = (Numeric("x", 0.0, 1.0), Categorical("c", ("p", "q", "r")), Numeric("z", -5.0, 5.0, missing=True))
SCHEMA = Schema(features=FEATURES, target=Numeric("y", -1.0, 1.0))
CLASSED = Schema(features=FEATURES, target=Categorical("y", ("a", "b")))
RNG = np.random.default_rng(3)
ROWS = np.array([[x, "pqr"[int(3 * x)], z] for x, z in RNG.uniform(size=(40, 2)).tolist()], dtype=object)
LABELS = RNG.uniform(-1.0, 1.0, 40)
CLASSES = np.where(LABELS > 0.0, "a", "b")


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=SCHEMA, n_estimators=5), LABELS),
        (
            FederatedGBDTRegressor(
                epsilon=1.0, delta=1e-6, schema=SCHEMA, split_method="totally_random", n_estimators=5
            ),
            LABELS,
        ),
        (PrivaTreeClassifier(epsilon=1.0, schema=CLASSED, split_method="random"), CLASSES),
    ],
    ids=["S-GBDT", "federated", "PrivaTree"],
)
def test_random_trees_stay_the_same_on_other_rows(model: Any, labels: np.ndarray) -> None:
    found = structure_depends_on_data(model, ROWS, labels)
    assert found.independent
    assert found.difference is None
    assert found.trees == (1 if isinstance(model, PrivaTreeClassifier) else 5)
    assert len(found.changes) == 4


def test_trees_that_are_bought_depend_on_rows() -> None:
    model = DPBoostRegressor(
        epsilon=200.0, schema=SCHEMA, n_estimators=1, trees_per_ensemble=1, max_depth=2, initial_score="zero"
    )
    found = structure_depends_on_data(model, ROWS, np.sign(LABELS))
    assert not found.independent
    assert found.difference is not None


def test_a_trainer_that_peeks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug for the test: trees whose depth is the number of rows' parity, as if it had been read off the table."""
    original = sgbdt.train

    def peeking(plan: Any, aggregator: Any, generator: Any, *rest: Any, **named: Any) -> Any:
        for _ in range(aggregator._table.n_rows % 2):
            generator.random()
        return original(plan, aggregator, generator, *rest, **named)

    monkeypatch.setattr(sgbdt.AbstractSGBDT, "_train", staticmethod(peeking))
    found = structure_depends_on_data(
        SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=SCHEMA, n_estimators=2), ROWS, LABELS
    )
    assert not found.independent
    assert found.difference == "one row more: tree 1"


def test_an_estimator_that_ignores_its_seed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sgbdt.train

    def careless(plan: Any, aggregator: Any, generator: Any, *rest: Any, **named: Any) -> Any:
        return original(plan, aggregator, np.random.default_rng(), *rest, **named)

    monkeypatch.setattr(sgbdt.AbstractSGBDT, "_train", staticmethod(careless))
    with pytest.raises(InvalidParameter, match="SGBDTRegressor ignores its seed"):
        structure_depends_on_data(SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=SCHEMA, n_estimators=2), ROWS, LABELS)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="LinearRegression is not an estimator of this library"):
        structure_depends_on_data(LinearRegression(), ROWS, LABELS)
    with pytest.raises(InvalidParameter, match="schema=None: a privately estimated schema depends on the rows"):
        structure_depends_on_data(SGBDTRegressor(epsilon=1.0, delta=1e-6), ROWS, LABELS)
    with pytest.raises(InvalidParameter, match=r"len\(X\)=1 must be at least 2"):
        structure_depends_on_data(SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=SCHEMA), ROWS[:1], LABELS[:1])
