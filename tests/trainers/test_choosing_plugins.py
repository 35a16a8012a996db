"""A trainer from outside that releases a declared statistic: searched for never, validated with its caveat stated."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Budget, Ledger, PrivacyUnit
from ledgerwood.curator import DeclaredStatistic
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter, RunFailed
from ledgerwood.mechanisms import GaussianMechanism
from ledgerwood.trainers import (
    AbstractRegressor,
    AbstractTreeEstimator,
    AbstractTreePlan,
    PrivateSearch,
    Stage,
    private_cross_validate,
    private_grid_search,
)

A = lw.Adjacency.ADD_REMOVE
SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 10))
X = np.random.default_rng(0).uniform(0, 1, (400, 2))
Y = 10 * X[:, 1]
CAVEAT = "label sum declared by a test, not proven here"
SUM = DeclaredStatistic(
    name="label sum", declared_by="a test", columns=(SCHEMA.target,), most=(16,), exponent=-4,
    function=lambda chunk: np.rint(16 * np.nan_to_num(chunk["y"] / 5 - 1)).astype(np.int64)[:, np.newaxis],
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SumPlan(AbstractTreePlan):
    noise_multiplier: float = 1.0
    loss: ClassVar[str] = "squared"

    def _require_whole(self):
        pass

    @property
    def mechanism(self):
        return GaussianMechanism(stddev=self.noise_multiplier)

    @property
    def stages(self):
        return (Stage.once(self.mechanism.event(SUM.sensitivity(self.adjacency), self.adjacency), 0),)

    def leaf_signal(self, rows):
        return rows

    def calibrated(self, budget):
        noise = lw.calibrate(lambda m: dataclasses.replace(self, noise_multiplier=m).event, budget)
        return dataclasses.replace(self, noise_multiplier=noise)

    def has_room(self, budget):
        return True


@dataclass(eq=False, repr=False, kw_only=True)
class SumRegressor(AbstractRegressor, AbstractTreeEstimator):
    _plan_type: ClassVar[Any] = SumPlan

    scale: float = 1.0
    fails: bool = False

    def _uncalibrated_plan(self, schema):
        return SumPlan(adjacency=self.budget.adjacency, max_bins=16, max_depth=0)

    def _train(self, plan, aggregator, generator, progress):
        if self.fails:
            raise ZeroDivisionError("of this trainer")
        ((event, _),) = plan.schedule()
        with aggregator.open(event, purpose=SUM.purpose("sum")) as round_:
            found = round_.release(SUM, plan.mechanism, purpose="sum").real
        return Ensemble(initial_score=float(np.clip(self.scale * found[0] / 400, -1, 1)))


def ledger():
    return Ledger(Budget(epsilon=50.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([{"scale": 0.5}], rf"candidates\[0\] of SumRegressor releases {CAVEAT}.* use private_grid_search"),
        ([{"fails": True}], r"candidates\[0\] of SumRegressor fails .* ZeroDivisionError: of this trainer"),
    ],
)
def test_a_search_refuses_it_by_name_before_anything_is_paid(candidates, words):
    book = ledger()
    before = book.entries
    search = PrivateSearch(SumRegressor(), candidates, epsilon=2.0, delta=1e-5, schema=SCHEMA)
    with pytest.raises(InvalidParameter, match=words) as refusal:
        search.fit(X, Y, ledger=book)
    assert not isinstance(refusal.value, RunFailed)
    assert book.entries == before


def test_a_validation_states_who_declares_it():
    model = SumRegressor(schema=SCHEMA)
    assert private_cross_validate(model, X, Y, ledger=ledger(), cv=2).privacy.assumptions[-1] == CAVEAT
    search = private_grid_search(model, {"scale": [0.5, 1.0]}, X, Y, ledger=ledger(), cv=2)
    assert search.privacy.assumptions[-1] == CAVEAT
    assert search.best_estimator.privacy_.assumptions[-1] == CAVEAT
