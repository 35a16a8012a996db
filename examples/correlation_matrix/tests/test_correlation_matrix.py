"""The matrix is near the true one, the sensitivity holds, the ledger says who declared it, and nothing is free."""

import numpy as np
import pytest
from correlation_matrix import moments, private_correlations

import ledgerwood as lw
from ledgerwood.verification import assert_statistic, verify_ledger

A = lw.Adjacency.ADD_REMOVE
SCHEMA = lw.Schema(features=(lw.Numeric("age", 0, 90), lw.Numeric("income", 0, 40_000), lw.Numeric("mood", -3, 3)))
BUDGET = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A)


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    age = generator.uniform(20, 70, 20_000)
    income = np.clip(300 * age + generator.normal(0, 4000, age.size), 0, 40_000)
    return np.stack((age, income, generator.uniform(-3, 3, age.size)), axis=1)


def test_it_is_near_the_true_matrix_and_a_stranger_confirms_the_cost(rows, tmp_path):
    with lw.Ledger.open(tmp_path / "rows.jsonl", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as ledger:
        found = private_correlations(rows, SCHEMA, BUDGET, ledger=ledger)
    np.testing.assert_allclose(found.matrix, np.corrcoef(rows.T), atol=0.1)
    assert np.linalg.eigvalsh(found.matrix).min() >= -1e-9
    assert found.caveat == "scaled moments declared by the correlation matrix example, not proven here"
    report = verify_ledger(tmp_path / "rows.jsonl")
    assert report.verdict == "confirmed"
    assert report.epsilon_readded <= 1.0 + 1e-9
    assert found.caveat in (tmp_path / "rows.jsonl").read_text()


def test_the_statistic_is_as_it_declares():
    assert assert_statistic(moments(SCHEMA)).ok


def test_a_row_with_a_gap_counts_nothing(rows):
    gaps = rows.copy()
    gaps[:10_000, 1] = np.nan
    found = private_correlations(gaps, SCHEMA, lw.Budget(epsilon=1e4, delta=1e-6, adjacency=A))
    np.testing.assert_allclose(found.matrix, np.corrcoef(rows[10_000:].T), atol=0.01)


def test_a_spent_ledger_refuses(rows):
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    private_correlations(rows, SCHEMA, BUDGET, ledger=ledger)
    with pytest.raises(lw.BudgetExceeded):
        private_correlations(rows, SCHEMA, BUDGET, ledger=ledger)
    assert len([entry for entry in ledger.entries if type(entry).__name__ == "GrantEntry"]) == 1
