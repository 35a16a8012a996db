"""The forest learns, costs what its plan says, is replayed on neighbours, saved, audited, and known by its name."""

import numpy as np
import pytest
from random_forest import ForestClassifier, ForestRegressor

import ledgerwood as lw
from ledgerwood.trainers.base.systems import system
from ledgerwood.verification import assert_trainer, audit_model, removed, replay, verify_ledger

FEATURES = (lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 10))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no", "yes")))
ROWS = np.random.default_rng(0).uniform(0, 1, (4000, 2))
LABELS = 10 * ROWS[:, 0]


def test_it_learns_numbers_and_a_stranger_confirms_what_it_cost(tmp_path):
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    with lw.Ledger.open(tmp_path / "rows.jsonl", budget=budget, unit=lw.PrivacyUnit.ROW) as ledger:
        model = ForestRegressor(epsilon=1.0, delta=1e-6, schema=NUMBERS).fit(ROWS, LABELS, ledger=ledger)
    assert model.score(ROWS, LABELS) > 0.5
    assert 0.999 < model.privacy_.epsilon <= 1.0
    assert verify_ledger(tmp_path / "rows.jsonl").verdict == "confirmed"


def test_it_learns_classes_and_is_the_same_after_saving(tmp_path):
    y = np.where(ROWS[:, 0] > 0.5, "yes", "no")
    model = ForestClassifier(epsilon=1.0, delta=1e-6, schema=CLASSES, n_estimators=32).fit(ROWS, y)
    assert model.score(ROWS, y) > 0.85
    model.save(tmp_path / "model")
    again = ForestClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))


def test_only_the_values_below_the_noise_change_on_a_neighbour():
    data = (ROWS[:60], LABELS[:60])
    found = replay(lambda data: ForestRegressor(schema=NUMBERS, n_estimators=2).fit(*data), data, removed(data, 7))
    assert found.ok, found
    assert found.largest_share > 0.0


def test_an_audit_refutes_nothing():
    found = audit_model(
        ForestRegressor(epsilon=2.0, delta=1e-6, schema=NUMBERS, n_estimators=2), ROWS[:500], LABELS[:500],
        canaries=100, rng=np.random.default_rng(1),
    )  # fmt: skip
    assert not found.rejected


@pytest.mark.parametrize("kind", [ForestRegressor, ForestClassifier])
def test_they_are_as_a_trainer_has_to_be(kind):
    report = assert_trainer(kind(n_estimators=2))
    assert report["weights"].verdict == "passed"
    assert report["estimated schema"].verdict == "does not apply"


def test_what_it_cannot_do_is_refused_before_anything_is_spent():
    with pytest.raises(lw.PrivacyError, match="declared schema"):
        ForestRegressor().fit(ROWS, LABELS)
    with pytest.raises(lw.PrivacyError, match="n_estimators=0"):
        ForestRegressor(schema=NUMBERS, n_estimators=0).fit(ROWS, LABELS)


def test_the_command_line_knows_it_once_it_is_installed():
    assert system("random-forest").for_target(NUMBERS) is ForestRegressor
