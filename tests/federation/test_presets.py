"""Presets, and trainers from outside, in a federation: the central model, or a refusal by name that spends nothing."""

from typing import get_args

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import RoundViolation
from ledgerwood.federation.run import federate
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.choosing.private_search import PrivateSearch
from ledgerwood.trainers.dpboost.plan import Preset as DPBoostPreset
from ledgerwood.trainers.dpxgboost.plan import Preset as DPXGBoostPreset
from ledgerwood.trainers.federated.presets import Preset as FederatedPreset
from ledgerwood.trainers.privatree.plan import Preset as PrivaTreePreset
from ledgerwood.trainers.sgbdt.plan import Preset as SGBDTPreset
from tests.verification.testing.test_trainer_kit import MeanRegressor

from .conftest import BUDGET, SCHEMA, parts, rows

PRESETS = [
    (made, preset)
    for made, kinds in (
        (SGBDTClassifier, SGBDTPreset),
        (FederatedGBDTClassifier, FederatedPreset),
        (DPBoostClassifier, DPBoostPreset),
        (DPXGBoostClassifier, DPXGBoostPreset),
        (PrivaTreeClassifier, PrivaTreePreset),
    )
    for preset in get_args(kinds)
]
RATIOS_OR_SORTED = {
    *((DPBoostClassifier, each) for each in ("paper", "enhanced", "para", "seq", "np")),
}  # fmt: skip
"""Presets whose leaves are ratios, or whose gains need rows that are sorted: docs/explanation/federation.md."""


@pytest.mark.slow
@pytest.mark.parametrize(("made", "preset"), PRESETS, ids=lambda each: getattr(each, "__name__", each))
def test_each_preset_is_trained_as_centrally_or_refused_by_name(made, preset):
    X, y = rows(200)
    few = {} if made is PrivaTreeClassifier else {"n_estimators": 4}
    options = {"schema": SCHEMA, "epsilon": 2.0, "delta": 1e-4, "preset": preset, "random_state": 3, **few}
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    try:
        found = federate(made(**options), parts(X, y, (80, 120)), ledger=ledger, engine="process")
    except RoundViolation as refusal:
        assert "Nothing was spent" in str(refusal)
        assert ledger.spent().epsilon == 0.0
        assert (made, preset) in RATIOS_OR_SORTED
    else:
        assert (made, preset) not in RATIOS_OR_SORTED
        assert np.array_equal(found.predict_proba(X), made(**options).fit(X, y).predict_proba(X))
        if made is FederatedGBDTClassifier:  # what is sent are the words that the plan counts
            planned = found.plan_.communication(SCHEMA.cells(found.plan_.max_bins), n_clients=2)
            assert sum(each.words for each in found.federation_.rounds) == planned.words_up


class Outside(SGBDTRegressor):
    """A trainer of another package that asks the library's own queries."""


def test_a_trainer_from_outside_is_trained_as_centrally():
    X, _ = rows(100)
    y = X[:, 0]
    schema = lw.Schema(features=SCHEMA.features, target=lw.Numeric("y", 0, 1))
    options = {"schema": schema, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 3, "random_state": 3}
    found = federate(Outside(**options), parts(X, y, (30, 70)), engine="process")
    assert np.array_equal(found.predict(X), Outside(**options).fit(X, y).predict(X))


def test_a_statistic_from_outside_is_code_that_owners_do_not_take():
    X, y = rows(100)
    schema = lw.Schema(features=SCHEMA.features, target=lw.Numeric("label", 0, 10))
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    with pytest.raises(RoundViolation, match="function is code"):
        federate(
            MeanRegressor(schema=schema, epsilon=1.0, delta=1e-5), parts(X, X[:, 0], (30, 70)), ledger=ledger,
            engine="process",
        )  # fmt: skip
    assert ledger.spent().epsilon == 0.0


def test_a_private_search_is_refused_before_anything_is_spent():
    X, y = rows(100)
    estimator = SGBDTClassifier(schema=SCHEMA, n_estimators=2)
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    depths = [{"max_depth": 2}, {"max_depth": 3}]
    search = PrivateSearch(estimator, candidates=depths, epsilon=3.0, delta=1e-4, schema=SCHEMA)
    with pytest.raises(RoundViolation, match="Selection: a private search needs rows in one place"):
        federate(search, parts(X, y, (30, 70)), ledger=ledger, engine="process")
    assert ledger.spent().epsilon == 0.0
