"""The regressions learn, pass the trainers' kit, cost what their plan says, are audited, and known by their name."""

import os
from pathlib import Path

import numpy as np
import pytest
from private_regression import PrivateLinearRegression, PrivateLogisticRegression, statistic

import ledgerwood as lw
from ledgerwood.trainers.base.systems import system
from ledgerwood.verification import assert_statistic, assert_trainer, audit_model, removed, replay, verify_ledger

FEATURES = (lw.Numeric("a", 0, 1), lw.Categorical("b", ("u", "v")), lw.Numeric("c", 0, 5, missing=True))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 10))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("yes", "no")))
GENERATOR = np.random.default_rng(0)
N = 4000
A, C = GENERATOR.uniform(0, 1, N), GENERATOR.uniform(0, 5, N)
B = GENERATOR.random(N) < 0.5
ROWS = np.empty((N, 3), dtype=object)
ROWS[:, 0], ROWS[:, 1], ROWS[:, 2] = A, np.where(B, "u", "v"), C
LABELS = 6 * A + 2 * B + 0.2 * C


@pytest.mark.parametrize("kind", [PrivateLinearRegression, PrivateLogisticRegression])
def test_they_are_as_a_trainer_has_to_be(kind):
    report = assert_trainer(kind(n_steps=3))
    assert report["estimated schema"].verdict == "passed"
    assert report["weights"].verdict == "passed"


@pytest.mark.parametrize("schema", [NUMBERS, CLASSES])
@pytest.mark.parametrize("coefficients", [None, np.array([0.5, -3.0, 2.0, 0.0, 40.0])])
def test_their_statistics_are_as_they_declare(schema, coefficients):
    kind = PrivateLinearRegression if schema is NUMBERS else PrivateLogisticRegression
    assert_statistic(statistic(kind(schema=schema).make_plan(schema), schema, coefficients))


def test_it_learns_numbers_and_a_stranger_confirms_what_it_cost(tmp_path):
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    with lw.Ledger.open(tmp_path / "rows.jsonl", budget=budget, unit=lw.PrivacyUnit.ROW) as ledger:
        model = PrivateLinearRegression(epsilon=1.0, delta=1e-6, schema=NUMBERS).fit(ROWS, LABELS, ledger=ledger)
    assert model.score(ROWS, LABELS) > 0.9
    assert 0.999 < model.privacy_.epsilon <= 1.0
    assert verify_ledger(tmp_path / "rows.jsonl").verdict == "confirmed"
    assert "clipped gradient declared by the private regression example, not proven here" in model.privacy_.assumptions


def test_without_noise_it_is_least_squares():
    model = PrivateLinearRegression(epsilon=1e6, delta=1e-6, schema=NUMBERS, n_steps=600, clip=4.0).fit(ROWS, LABELS)
    np.testing.assert_allclose(model.predict(ROWS), LABELS, atol=0.1)  # the labels are linear in the columns


def test_it_learns_two_classes_whatever_their_order_and_is_the_same_after_saving(tmp_path):
    y = np.where(LABELS > 4.5, "yes", "no")
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=CLASSES).fit(ROWS, y)
    assert model.score(ROWS, y) > 0.9
    model.save(tmp_path / "model")
    again = PrivateLogisticRegression.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    np.testing.assert_array_equal(again.model_.values, model.model_.values)


def test_rows_of_half_the_weight_make_the_same_line_as_half_of_the_rows():
    schema = lw.Schema(features=FEATURES, target=NUMBERS.target, weight_bound=2.0)
    model = PrivateLinearRegression(epsilon=1e6, delta=1e-6, schema=schema)
    halved, whole = (model.fit(ROWS, LABELS, sample_weight=np.full(N, w)).predict(ROWS) for w in (1.0, 2.0))
    np.testing.assert_allclose(halved, whole, atol=1e-2)
    assert np.corrcoef(halved, LABELS)[0, 1] > 0.99


def test_only_the_values_below_the_noise_change_on_a_neighbour():
    data = (ROWS[:60], LABELS[:60])
    found = replay("private-regression", data, removed(data, 7), schema=NUMBERS)
    assert found.ok, found
    assert 0.0 < found.largest_share <= 1.0


def test_audits_refute_nothing_and_see_something():
    model = PrivateLinearRegression(epsilon=4.0, delta=1e-6, schema=NUMBERS, n_steps=3)
    found = audit_model(model, ROWS[:300], LABELS[:300], canaries=40, trainings=10, rng=np.random.default_rng(1))
    assert not found.rejected
    assert found.scored > 0
    assert len(np.unique(found.scores.with_row)) > 100


def test_what_it_cannot_do_is_refused_before_anything_is_spent():
    three = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("a", "b", "c")))
    with pytest.raises(lw.PrivacyError, match="learns two classes"):
        PrivateLogisticRegression(schema=three).fit(ROWS, np.full(N, "a"))
    with pytest.raises(lw.PrivacyError, match="n_steps=0"):
        PrivateLinearRegression(schema=NUMBERS, n_steps=0).fit(ROWS, LABELS)
    with pytest.raises(lw.PrivacyError, match="delta"):
        PrivateLinearRegression(schema=NUMBERS, delta=0.0).fit(ROWS, LABELS)


def test_a_budget_that_leaves_noise_only_is_warned_of():
    with pytest.warns(lw.PrivacyWarning, match="the noise of a gradient is larger"):
        PrivateLinearRegression(epsilon=0.01, schema=NUMBERS, expected_rows=1000).fit(ROWS, LABELS)


def test_the_command_line_knows_it_once_it_is_installed():
    assert system("private-regression").for_target(NUMBERS) is PrivateLinearRegression
    assert system("private-regression").for_target(CLASSES) is PrivateLogisticRegression


@pytest.mark.skipif(
    not Path(os.environ.get("LEDGERWOOD_DATA", "none")).exists(), reason="needs Abalone: LEDGERWOOD_DATA"
)
def test_it_is_of_use_on_abalone():
    from ledgerwood.datasets import load

    data = load("abalone", fetch=False)
    held = np.arange(len(data.y)) % 5 == 0
    model = PrivateLinearRegression(epsilon=1.0, delta=1e-6, schema=data.schema).fit(data.X[~held], data.y[~held])
    error = model.predict(data.X[held]) - data.y[held].astype(np.float64)
    assert np.sqrt(np.mean(error**2)) < 2.7  # the mean label has 3.3, least squares 2.2
