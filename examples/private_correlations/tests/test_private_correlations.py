"""The matrix is near the true one, its cost is confirmed, and a row changes no more than is declared."""

import numpy as np
import pytest
from private_correlations import correlation_statistic, private_correlations

import ledgerwood as lw
from ledgerwood.errors import BudgetExceeded
from ledgerwood.mechanisms import TestRandom
from ledgerwood.verification import check_sensitivity, replay, verify_ledger

SCHEMA = lw.Schema(
    features=(lw.Numeric("age", 0, 100), lw.Categorical("sex", ("f", "m")), lw.Numeric("income", 0, 60_000))
)
NUMERIC = [SCHEMA.features[0], SCHEMA.features[2]]


def rows(n=4000, seed=0):
    generator = np.random.default_rng(seed)
    age = generator.uniform(20, 80, n)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1] = age, generator.choice(["f", "m"], n)
    X[:, 2] = 400 * age + generator.normal(0, 6000, n)
    return X


def ledger_of(adjacency, path=None):
    budget = lw.Budget(epsilon=2.0, delta=1e-5, adjacency=adjacency)
    return lw.Ledger(budget, unit=lw.PrivacyUnit.ROW) if path is None else lw.Ledger.open(
        path, budget=budget, unit=lw.PrivacyUnit.ROW
    )  # fmt: skip


@pytest.mark.parametrize("adjacency", [lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_matrix_is_near_the_true_one(adjacency, one_by_one, tmp_path):
    X = rows()
    with ledger_of(adjacency, tmp_path / "team.jsonl") as ledger:
        found = private_correlations(X, SCHEMA, ledger=ledger, epsilon=1.0, delta=5e-6, one_by_one=one_by_one)
        assert ledger.spent().epsilon == pytest.approx(1.0, rel=0.02)
    held = np.clip(X[:, [0, 2]].astype(float), 0, [100, 60_000])
    assert found.names == ("age", "income")
    assert found.matrix[0, 1] == pytest.approx(np.corrcoef(held.T)[0, 1], abs=0.1)
    np.testing.assert_allclose(np.diag(found.matrix), 1.0)
    assert found.rows == pytest.approx(4000, abs=60)
    report = verify_ledger(tmp_path / "team.jsonl")
    assert report.verdict == "confirmed"
    text = (tmp_path / "team.jsonl").read_text()
    assert ("not proven here" in text) == (not one_by_one)
    assert bool(found.caveat) == (not one_by_one)


def test_more_than_the_budget_is_refused():
    with pytest.raises(BudgetExceeded):
        private_correlations(rows(50), SCHEMA, ledger=ledger_of(lw.Adjacency.ADD_REMOVE), epsilon=3.0, delta=1e-6)


@pytest.mark.parametrize("adjacency", list(lw.Adjacency))
def test_no_neighbour_breaks_what_is_declared(adjacency):
    report = check_sensitivity(correlation_statistic(NUMERIC), schema=SCHEMA, adjacency=adjacency, evaluations=150)
    assert not report.refuted, report


def test_a_fit_on_neighbours_differs_by_no_more_than_its_noise_was_made_for():
    def fit(data):
        ledger = ledger_of(lw.Adjacency.ADD_REMOVE)
        return private_correlations(
            data[0], SCHEMA, ledger=ledger, epsilon=1.0, delta=1e-6, source=TestRandom(1)
        ).matrix.tolist()

    X = rows(40)
    found = replay(fit, (X, X[:, 0].astype(float)), (X[1:], X[1:, 0].astype(float)))
    assert found.ok, found
