"""What a plug-in's loop and plan may do with what was paid for: nothing beyond it, whatever else the grant holds."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Budget, Composed, Ledger, PrivacyUnit
from ledgerwood.curator import LabelMoments
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import AdjacencyMismatch, DrawRefused, InvalidParameter, LedgerCorrupted, SchemaError
from ledgerwood.mechanisms import EllipticalGaussianMechanism
from ledgerwood.trainers import AbstractRegressor, AbstractTreeEstimator, AbstractTreePlan, PrivateSearch, Stage

A = lw.Adjacency.ADD_REMOVE
SCHEMA = lw.Schema.uniform(0, 1, n_features=1, target=lw.Numeric("y", 0, 10))
X = np.random.default_rng(0).uniform(0, 1, (60, 1))
Y = 10 * X[:, 0]
LABELS = LabelMoments()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeansPlan(AbstractTreePlan):
    n_means: int = 2
    noise_multiplier: float = 1.0
    loss: ClassVar[str] = "squared"

    def _require_whole(self):
        pass

    @property
    def mechanism(self):
        shifts = LABELS.sensitivity(self.adjacency)
        return EllipticalGaussianMechanism(stddevs=(64.0 * self.noise_multiplier,) * shifts.columns)

    @property
    def stages(self):
        event = self.mechanism.event(LABELS.sensitivity(self.adjacency), self.adjacency)
        return tuple(Stage.once(event, number) for number in range(self.n_means))

    def leaf_signal(self, rows):
        return rows

    def calibrated(self, budget):
        noise = lw.calibrate(lambda m: dataclasses.replace(self, noise_multiplier=m).event, budget)
        return dataclasses.replace(self, noise_multiplier=noise)

    def has_room(self, budget):
        return True


@dataclass(eq=False, repr=False, kw_only=True)
class Means(AbstractRegressor, AbstractTreeEstimator):
    _plan_type: ClassVar[Any] = MeansPlan

    more: int = 0

    def _uncalibrated_plan(self, schema):
        return MeansPlan(adjacency=self.budget.adjacency, max_bins=8, max_depth=0)

    def _train(self, plan, aggregator, generator, progress):
        trees, drawn = [], [event for event, _ in plan.schedule()]
        for event in drawn + drawn[:1] * self.more:
            with aggregator.open(event, purpose="labels") as round_:
                found = round_.release(LABELS, plan.mechanism, purpose="labels").real
            trees.append(Tree(structure=TreeStructure.root(), values=np.array([float(np.tanh(found.ravel()[0]))])))
        return Ensemble(initial_score=0.0, trees=tuple(trees))


def ledger(epsilon=50.0):
    return Ledger(Budget(epsilon=epsilon, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)


def means(kind=Means, **parameters):
    return kind(**{"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-6, **parameters})


def test_a_loop_draws_its_own_plan_and_no_other_one_of_a_shared_grant():
    event, book = means().make_plan(SCHEMA).event, ledger()
    grant = book.grant(Composed((event, event)), purpose="two fits", delta=1e-6)
    with pytest.raises(DrawRefused, match="the plan has no .* left"):
        means(more=1).fit(X, Y, ledger=grant)
    means().fit(X, Y, ledger=grant)  # what is left is the other fit's, whole
    assert not any(grant.remaining.values())


class MutablePlan:
    """A plan of somebody who stops early and says so in the plan."""

    purchase, loss, max_bins = None, "squared", 8
    needs_one_part = needs_one_process = ""

    def __init__(self, inner):
        self.inner, self.stopped = inner, False

    @property
    def event(self):
        return dataclasses.replace(self.inner, n_means=1 if self.stopped else self.inner.n_means).event

    def leaf_signal(self, rows):
        return rows

    def calibrated(self, budget):
        return MutablePlan(self.inner.calibrated(budget))

    def has_room(self, budget):
        return True


@dataclass(eq=False, repr=False, kw_only=True)
class Stops(Means):
    def _uncalibrated_plan(self, schema):
        return MutablePlan(super()._uncalibrated_plan(schema))

    def _train(self, plan, aggregator, generator, progress):
        model = super()._train(plan.inner, aggregator, generator, progress)
        plan.stopped = True
        return model


def test_a_plan_that_changes_while_it_is_carried_out_gives_no_statement():
    model = means(Stops)
    with pytest.raises(InvalidParameter, match=r"MutablePlan changed while .* frozen dataclass"):
        model.fit(X, Y)
    assert not hasattr(model, "privacy_")


@dataclass(eq=False, repr=False, kw_only=True)
class OtherRelation(Means):
    def _uncalibrated_plan(self, schema):
        return MeansPlan(adjacency=A, max_bins=8, max_depth=0)


def test_a_plan_under_another_relation_is_refused_before_it_is_paid_for():
    book = ledger()
    with pytest.raises((AdjacencyMismatch, InvalidParameter), match="replace-one"):
        means(OtherRelation, adjacency="replace-one").fit(X, Y, ledger=book)
    assert len(book.entries) == 1


def test_a_trainer_that_estimates_no_schema_says_so_before_it_is_paid_for():
    pandas, book = pytest.importorskip("pandas"), ledger()
    with pytest.raises(SchemaError, match="cannot estimate a schema; declare it"):
        means(schema=None).fit(pandas.DataFrame(X, columns=["x"]), Y, ledger=book)
    assert len(book.entries) == 1


@dataclass(eq=False, repr=False, kw_only=True)
class Warm(Means):
    def _train(self, plan, aggregator, generator, progress):
        own = super()._train(plan, aggregator, generator, progress)
        self._before = (*getattr(self, "_before", ()), *own.trees)
        return Ensemble(initial_score=0.0, trees=self._before)


@pytest.mark.slow  # a search makes some forty runs
def test_runs_of_a_search_share_no_estimator():
    search = PrivateSearch(Warm(), [{}], epsilon=50.0, delta=1e-6, schema=SCHEMA, mean_runs=40.0)
    assert len(search.fit(X, Y).ensemble_.trees) in (0, 2)  # 0: by chance there was no run


def test_a_statement_that_claims_more_than_its_ledger_is_not_loaded(tmp_path):
    means().fit(X, Y).save(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["privacy"]["epsilon"] *= 0.5
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(LedgerCorrupted, match="is not what its grant costs"):
        Means.load(tmp_path)
