"""Rows that an audit makes up, on which one canary decides what a model releases."""

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import PermuteAndFlipMechanism
from ledgerwood.trainers import DPBoostRegressor, DPXGBoostRegressor, PrivaTreeClassifier, SGBDTRegressor
from ledgerwood.verification import audit_model
from ledgerwood.verification.canaries.fitting import OwnFits
from ledgerwood.verification.canaries.power.law import RatioLaw
from ledgerwood.verification.canaries.power.rows import corners, worst_rows
from ledgerwood.verification.canaries.reduced import one_mechanism

FEATURES = tuple(Categorical(f"b{i}", (0, 1)) for i in range(2))
SCHEMA = Schema(features=FEATURES, target=Numeric("y", -1.0, 1.0))
CLASSED = Schema(features=FEATURES, target=Categorical("y", ("a", "b")))


def fits_of(estimator: Any) -> OwnFits:
    return OwnFits.of(one_mechanism(estimator)[0], 2)


def found(fits: OwnFits, canaries: int) -> Any:
    rng = np.random.default_rng(1)
    return worst_rows(fits, replaced=False, canaries=canaries, delta=0.0, alpha=0.05, generator=rng)


def test_corners_are_the_ends_of_two_features() -> None:
    features = (Numeric("x", 0.0, 1.0), Categorical("one", ("only",)), Categorical("c", ("u", "v", "w")))
    rows = corners(Schema(features=features, target=SCHEMA.target), bins=4)
    assert [list(row) for row in rows] == [
        [0.125, "only", "u"], [0.125, "only", "w"], [0.875, "only", "u"], [0.875, "only", "w"]
    ]  # fmt: skip


@pytest.mark.slow  # a search of two seconds
def test_ratios_are_those_of_the_two_distributions() -> None:
    """E[e^-L] with the canary and E[e^L] without it are 1, for the ratio L of any two distributions."""
    fits = fits_of(DPBoostRegressor(epsilon=2.0, schema=SCHEMA))
    rows = found(fits, 200).rows
    _, recording = fits.fitted(*rows.data(np.ones(1, dtype=np.bool_)), np.random.default_rng(2))
    law = RatioLaw.of(recording.releases, fits.evidence(rows))
    assert np.exp(-law.included).mean() == pytest.approx(1.0, abs=0.02)
    assert np.exp(law.left_out).mean() == pytest.approx(1.0, abs=0.02)
    assert np.abs(law.included).max() <= 2.0 + 1e-6  # epsilon


def test_a_label_is_decided_with_the_whole_epsilon() -> None:
    """With the canary two labels are equal, and without it one leads: nearly all of epsilon in one choice."""
    fits = fits_of(PrivaTreeClassifier(epsilon=4.0, schema=CLASSED))
    worst = found(fits, 2000)
    assert worst.expected > 2.97  # 80 % of 3.71, what a perfect attack on any mechanism of epsilon 4 shows
    _, recording = fits.fitted(*worst.rows.data(np.ones(1, dtype=np.bool_)), np.random.default_rng(2))
    assert isinstance(recording.releases[0].mechanism, PermuteAndFlipMechanism)
    law = RatioLaw.of(recording.releases, fits.evidence(worst.rows))
    assert 3.7 < max(law.included.max(), -law.left_out.min()) <= 4.0 + 1e-9


@pytest.mark.slow  # a search of three seconds each
@pytest.mark.parametrize("system", [DPBoostRegressor, DPXGBoostRegressor])
def test_bought_splits_show_four_fifths_of_what_can_be_shown(system: Any) -> None:
    assert found(fits_of(system(epsilon=4.0, schema=SCHEMA)), 2000).expected > 0.8 * 3.3


@pytest.mark.slow  # 300 fits
def test_an_audit_makes_up_its_rows() -> None:
    audit = audit_model(PrivaTreeClassifier(epsilon=4.0, schema=CLASSED), mode="one_mechanism", trainings=300, rng=5)
    assert 1.5 < audit.epsilon_lower <= 4.0
    assert (audit.canaries, audit.trainings, audit.rejected) == (1, 300, False)
    assert "this attack is expected to show" in audit.attack


def test_public_trees_need_one_row() -> None:
    audit = audit_model(SGBDTRegressor(epsilon=4.0, delta=1e-5, schema=SCHEMA, n_estimators=2), canaries=4, trainings=3)
    assert (audit.canaries, audit.trainings, audit.shared) == (4, 3, False)


def test_without_rows_it_says_what_it_needs() -> None:
    with pytest.raises(InvalidParameter, match="no plan and schema are known"):
        audit_model(DecisionTreeClassifier())
    with pytest.raises(InvalidParameter, match="canaries=7 must be 1"):
        audit_model(DPBoostRegressor(epsilon=1.0, schema=SCHEMA), canaries=7)
    with pytest.raises(InvalidParameter, match="not used without X and y"):
        audit_model(DPBoostRegressor(epsilon=1.0, schema=SCHEMA), fill=3)
    with pytest.raises(InvalidParameter, match="how many features"):
        audit_model(DPBoostRegressor(epsilon=1.0, schema=Schema.uniform(0.0, 1.0, target=SCHEMA.target)))


def test_many_canaries_of_one_tree_are_scored_by_their_labels() -> None:
    """What was refused before: choices that several canaries share."""
    rng = np.random.default_rng(3)
    schema = Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(6)), target=CLASSED.target)
    rows, labels = rng.integers(0, 2, (20, 6)), rng.choice(["a", "b"], 20)
    audit = audit_model(PrivaTreeClassifier(epsilon=4.0, schema=schema), rows, labels, canaries=48, rng=4)
    assert audit.shared
    assert audit.scored >= 1
    assert len(np.unique(np.concatenate([audit.scores.with_row, audit.scores.without]))) > 1
    assert audit.epsilon_lower <= 4.0
