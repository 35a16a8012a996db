"""What was made elsewhere is charged, confirmed by the verifier, and refused where it does not fit."""

import math

import dp_accounting
import pytest
from external_release import spend_count, spend_dp_event, spend_sgd

import ledgerwood as lw
from ledgerwood.verification import verify_ledger

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=3.0, delta=1e-5, adjacency=A)


@pytest.fixture
def ledger(tmp_path):
    with lw.Ledger.open(tmp_path / "team.jsonl", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as opened:
        yield opened


def test_a_stranger_confirms_all_three(ledger, tmp_path):
    spend_sgd(ledger, [(1.1, 0.01, 1000), (2.0, 0.01, 500)], purpose="DP-SGD", delta=5e-6)
    tree = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(20.0), 4)
    spend_dp_event(ledger, tree, adjacency=A, purpose="four noisy sums", delta=5e-6)
    spend_count(ledger, scale=20, queries=3, purpose="three counts")
    report = verify_ledger(tmp_path / "team.jsonl")
    assert report.verdict == "confirmed"
    assert report.epsilon_readded == pytest.approx(ledger.spent().epsilon, rel=0.01)


def test_the_training_costs_what_dp_accounting_says(ledger):
    spend_sgd(ledger, [(1.1, 0.01, 1000)], purpose="DP-SGD")
    accountant = dp_accounting.pld.PLDAccountant()
    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
    accountant.compose(dp_accounting.SelfComposedDpEvent(step, 1000))
    assert ledger.spent().epsilon == pytest.approx(accountant.get_epsilon(ledger.spent().delta), rel=1e-2)


def test_counts_cost_their_pure_epsilon(ledger):
    spend_count(ledger, scale=20, queries=3, purpose="three counts")
    assert ledger.spent().epsilon <= 3 / 20 + 1e-12


def test_what_does_not_fit_is_refused_and_spends_nothing(ledger):
    spend_count(ledger, scale=20, purpose="a count")
    before = ledger.spent()
    with pytest.raises(lw.BudgetExceeded):
        spend_sgd(ledger, [(0.5, 0.5, 1000)], purpose="DP-SGD")
    assert ledger.spent() == before
    assert math.isfinite(before.epsilon)
