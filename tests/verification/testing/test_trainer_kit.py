"""The kit for trainers: one that is as it has to be passes, and each broken one is caught by the check of its fault."""

import dataclasses
import logging
import warnings
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.curator import DeclaredStatistic, declared_shifts
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import BallShifts, GaussianMechanism, SeededRandom
from ledgerwood.trainers import AbstractClassifier, AbstractNoisePlan, AbstractRegressor, AbstractTrainer, Stage, System
from ledgerwood.verification import assert_trainer, check_trainer

STEPS = 2**20
NORM = 2.0**20.5


def sums(chunk):
    """(1, label) of each row, both in [0, 1]."""
    y = np.nan_to_num(chunk["label"] / 10.0)
    return (np.stack((np.ones_like(y), y), axis=1) * STEPS).astype(np.int64)


def statistic_of(schema, **more):
    return DeclaredStatistic(
        name="mean label", declared_by="the kit's own tests", columns=(schema.target,), function=sums, exponent=-20,
        least=(0, 0), most=(STEPS, STEPS), norm=NORM, **more,
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPlan(AbstractNoisePlan):
    loss: str = "squared"

    def _require_whole(self):
        pass

    @property
    def shifts(self):
        return declared_shifts(self.adjacency, norm=NORM, exponent=-20)

    @property
    def mechanism(self):
        return GaussianMechanism(stddev=self.noise_multiplier * self.shifts.radius)

    @property
    def stages(self):
        return (Stage.once(self.mechanism.event(self.shifts, self.adjacency), "mean"),)


@dataclass(frozen=True, eq=False)
class Level:
    value: np.ndarray

    def to_arrays(self):
        return {"value": self.value}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(arrays["value"].astype(np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class MeanRegressor(AbstractRegressor, AbstractTrainer):
    """Predicts the mean label: the smallest trainer that there is."""

    _plan_type: ClassVar[type] = MeanPlan
    _model_type: ClassVar[type] = Level

    shrink: float = 1.0

    def _uncalibrated_plan(self, schema):
        if not isinstance(schema, lw.Schema):
            raise SchemaError("schema=None: a mean needs a declared range")
        return MeanPlan(adjacency=self.budget.adjacency, max_bins=64)

    def statistic(self, schema):
        return statistic_of(schema)

    def _train(self, plan, aggregator, generator, progress):
        for event, _ in plan.schedule():
            asked = self.statistic(aggregator.schema)
            with aggregator.open(event, purpose=asked.purpose("mean")) as round_:
                count, total = round_.release(asked, plan.mechanism, purpose="mean").real
        progress(1, 1)
        return Level(np.array([self.shrink * total / max(count, 1.0)]))

    def _scores(self, X):
        return np.full(self._cells(X).shape[1], 2.0 * np.clip(self.model_.value[0], 0.0, 1.0) - 1.0)


def numbers(X):
    """The cells of the first column that are finite numbers."""
    return [cell for cell in X[:, 0] if isinstance(cell, float) and np.isfinite(cell)]


class NumbersOnly(MeanRegressor):
    def _uncalibrated_plan(self, schema):
        if any(isinstance(each, lw.Categorical) for each in getattr(schema, "features", ())):
            raise SchemaError("a category is no number")
        return super()._uncalibrated_plan(schema)


@pytest.mark.slow  # two hundred fits
def test_a_trainer_that_refuses_the_kits_schema_is_told_what_to_give():
    report = check_trainer(NumbersOnly())
    assert not report.ok
    assert report["refusals"].verdict == report["adjacency"].verdict == "not looked at"
    assert "check NumbersOnly(schema=...), with a schema that it takes" in str(report)
    assert str(report).count("check NumbersOnly(schema=...)") == 1
    numbers = lw.Schema(features=(lw.Numeric("a", 0, 1),), target=lw.Numeric("label", 0.0, 10.0))
    assert check_trainer(NumbersOnly(schema=numbers)).ok


class Unfinished(MeanRegressor):
    def _train(self, plan, aggregator, generator, progress):
        raise NotImplementedError("the loop")


def test_one_cause_is_told_once_and_what_follows_from_it_is_no_pass():
    report = check_trainer(Unfinished())
    assert report["fit"].verdict == "failed"
    assert report["refusals"].verdict == report["ledger"].verdict == "not looked at"
    text = str(report)
    assert text.count("NotImplementedError: the loop") == 2, "of the fit, and of all that was not looked at"
    assert "schema=" not in text, "another schema would not help"


@pytest.mark.slow  # a hundred fits
@pytest.mark.parametrize("classes", [("no", "yes"), ("yes", "no")])
def test_a_classifier_as_it_has_to_be_passes(classes):
    schema = lw.Schema(features=(lw.Numeric("a", 0, 1),), target=lw.Categorical("label", classes))
    assert assert_trainer(MajorityClassifier(schema=schema))["learns"].verdict == "passed"


def test_a_classifier_whose_classes_have_weights_is_held_to_what_it_learns_without_them():
    from ledgerwood.verification.testing.trainer_checks import TrainerKit

    target = lw.Categorical("label", ("no", "yes"), weights=(1.0, 1000.0))
    schema = lw.Schema(features=(lw.Numeric("a", 0, 1),), target=target)
    assert "of rows right" in TrainerKit.of(MajorityClassifier(schema=schema), 40, alpha=0.01, seed=0).learns()


@pytest.mark.slow  # a hundred fits
def test_a_trainer_as_it_has_to_be_passes():
    report = assert_trainer(MeanRegressor())
    assert report.ok
    assert report["weights"].verdict == "passed"
    assert report["estimated schema"].verdict == "does not apply"
    assert "declared by the kit's own tests, not proven here" in report["declared sensitivity"].why
    assert {check.name for check in report.checks} >= {"replay", "noise", "ledger", "words on neighbours", "refusals"}
    assert "replace-one" in report["adjacency"].why


# --------------------------------------------------------------------------------------------------- broken ones


class ReadsTheMaximum(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.largest_ = max(numbers(X), default=0.0)
        return self


class KeepsRows(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        self.rows_ = X
        return super().fit(X, y, ledger, sample_weight)


class PrintsTheNumberOfRows(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        print(f"fitting {len(X)} rows")
        return super().fit(X, y, ledger, sample_weight)


class LogsAValue(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        logging.getLogger("mine").debug("largest label %s", np.nanmax(y, initial=0.0))
        return super().fit(X, y, ledger, sample_weight)


class WarnsOfOutliers(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        if any(cell > 1.0 for cell in numbers(X)):
            warnings.warn("some values are clamped", UserWarning, stacklevel=2)
        return super().fit(X, y, ledger, sample_weight)


class RefusesWithAValue(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        if len(X) != len(y):
            raise SchemaError(f"labels {y[0]!r} to {y[-1]!r} do not fit the rows")
        return super().fit(X, y, ledger, sample_weight)


class RefusesValues(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        if np.isnan(y).any():
            raise SchemaError("a label is missing")
        return super().fit(X, y, ledger, sample_weight)


class ForgetsNoise(MeanRegressor):
    def _train(self, plan, aggregator, generator, progress):
        super()._train(plan, aggregator, generator, progress)
        count, total = aggregator._table.statistic(self.statistic(aggregator.schema), np.empty(0, np.bool_))
        return Level(np.array([total / max(count, 1)]))


class DrawsTwiceOnOneReceipt(MeanRegressor):
    def _train(self, plan, aggregator, generator, progress):
        ((event, _),) = plan.schedule()
        asked = self.statistic(aggregator.schema)
        with aggregator.open(event, purpose=asked.purpose("mean")) as round_:
            values = [round_.release(asked, plan.mechanism, purpose="mean").real for _ in range(2)]
        return Level(np.mean(values, axis=0)[1:])


class UnderstatesItsSensitivity(MeanRegressor):
    def statistic(self, schema):
        less = {each: BallShifts(radius=2.0**0.5) for each in lw.Adjacency}

        def ten_times(chunk):
            return 10 * sums(chunk)

        asked = statistic_of(schema)
        return dataclasses.replace(
            asked, function=ten_times, most=(10 * STEPS,) * 2, norm=None, sensitivities=less, rehearse=False
        )


class MixesRows(MeanRegressor):
    def statistic(self, schema):
        def centred(chunk):
            found = sums(chunk)
            found[:, 1] = np.clip(found[:, 1] - int(found[:, 1].mean() if len(found) else 0), 0, STEPS)
            return found

        return dataclasses.replace(statistic_of(schema), function=centred, rehearse=False)


class IgnoresWeights(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        return super().fit(X, y, ledger, None if sample_weight is None else np.full(len(y), 2.0))


class IgnoresTheLedger(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        return super().fit(X, y, None, sample_weight)


class StatesHalf(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.privacy_ = dataclasses.replace(self.privacy_, epsilon=self.privacy_.epsilon / 2.0)
        return self


class SpendsBeforeItRefuses(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        if ledger is not None:
            ledger.spend(lw.PureEvent(epsilon=1e-6, adjacency=lw.Adjacency.ADD_REMOVE), purpose="a look")
        return super().fit(X, y, ledger, sample_weight)


class OwnSeed(MeanRegressor):
    def _random_source(self, call=0):
        return SeededRandom(7)


class CostsTooMuch(MeanRegressor):
    def make_plan(self, schema):
        return dataclasses.replace(super().make_plan(schema), noise_multiplier=1.0)


class ChangesItsParameters(MeanRegressor):
    def __init__(self, *, shrink=0.5, **more):
        super().__init__(shrink=shrink * 0.5, **more)


class Rounded(Level):
    @classmethod
    def from_arrays(cls, arrays):
        return cls(arrays["value"].round(1))


class LoadsSomethingElse(MeanRegressor):
    _model_type = Rounded


class RefusesToPredict(MeanRegressor):
    def _scores(self, X):
        if any(not isinstance(cell, float) for cell in X[:, 0]):
            raise ValueError("a cell is no number")
        return super()._scores(X)


@dataclass(eq=False, repr=False, kw_only=True)
class MajorityClassifier(AbstractClassifier, AbstractTrainer):
    """Predicts the more frequent of two classes."""

    _plan_type: ClassVar[type] = MeanPlan
    _model_type: ClassVar[type] = Level
    _several_classes: ClassVar[bool] = False

    def _uncalibrated_plan(self, schema):
        if not isinstance(schema, lw.Schema):
            raise SchemaError("schema=None: declare the classes")
        return MeanPlan(adjacency=self.budget.adjacency, max_bins=64)

    def second(self, target):
        """The place, in the declared order, of what is second in the sorted one."""
        return target.categories.index(sorted(target.categories)[1])

    def _train(self, plan, aggregator, generator, progress):
        target = aggregator.schema.target
        place = self.second(target)

        def sums(chunk):
            labels = chunk[target.name]
            return (np.stack((labels < 2, labels == place), axis=1) * STEPS).astype(np.int64)

        asked = DeclaredStatistic(
            name="classes", declared_by="the kit's own tests", columns=(target,), function=sums, exponent=-20,
            least=(0, 0), most=(STEPS, STEPS), norm=NORM,
        )  # fmt: skip
        for event, _ in plan.schedule():
            with aggregator.open(event, purpose=asked.purpose("classes")) as round_:
                count, second = round_.release(asked, plan.mechanism, purpose="classes").real
        return Level(np.array([2.0 * second / max(count, 1.0) - 1.0]))

    def _scores(self, X):
        return np.full(self._cells(X).shape[1], self.model_.value[0])


class ReadsTheLargestLabel(MajorityClassifier):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.largest_ = max((label for label in y if isinstance(label, str) and label in ("no", "yes")), default="no")
        return self


class ReadsWhichClassesOccur(MajorityClassifier):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.seen_ = sorted({label for label in y if isinstance(label, str) and label in ("no", "yes")})
        return self


class ReadsWhichCategoriesOccur(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.seen_ = sorted({cell for cell in X[:, 1] if isinstance(cell, str) and cell in ("u", "v", "w")})
        return self


class ReadsWhetherThereAreRows(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        self.empty_ = len(y) == 0
        return self


class ReadsTheLabelsRange(MeanRegressor):
    def fit(self, X, y, ledger=None, sample_weight=None):
        super().fit(X, y, ledger, sample_weight)
        inside = y[(y >= 0.0) & (y <= 10.0)]
        self.range_ = (min(inside, default=0.0), max(inside, default=0.0))
        return self


class ExchangesClasses(MajorityClassifier):
    def second(self, target):
        return 1  # the declared order for the sorted one


BROKEN = [
    (ReadsTheLargestLabel, "replay", "largest_"),
    (ReadsWhichClassesOccur, "replay", "seen_"),
    (ReadsWhichCategoriesOccur, "replay", "seen_"),
    (ReadsWhetherThereAreRows, "replay", "empty_"),
    (ReadsTheLabelsRange, "replay", "range_"),
    (ExchangesClasses, "learns", "are classes exchanged?"),
    (ReadsTheMaximum, "replay", "largest_"),
    (KeepsRows, "replay", "rows_"),
    (PrintsTheNumberOfRows, "words on neighbours", "fitting 40 rows"),
    (PrintsTheNumberOfRows, "replay", "fitting 40 rows"),
    (LogsAValue, "words on neighbours", "logged"),
    (WarnsOfOutliers, "words on neighbours", "clamped"),
    (RefusesWithAValue, "refusals", "on other values"),
    (RefusesValues, "words on neighbours", "a label is missing"),
    (ForgetsNoise, "fit", "noise is not fresh, or there is none"),
    (ForgetsNoise, "replay", "value"),
    (DrawsTwiceOnOneReceipt, "fit", "RoundViolation"),
    (UnderstatesItsSensitivity, "declared sensitivity", "differ by"),
    (UnderstatesItsSensitivity, "replay", "at most"),
    (MixesRows, "declared sensitivity", "must depend on that row only"),
    (IgnoresWeights, "weights", "weights are ignored"),
    (IgnoresTheLedger, "shared ledger", "on one ledger"),
    (StatesHalf, "ledger", "and the plan costs"),
    (SpendsBeforeItRefuses, "refusals", "after something was spent"),
    (OwnSeed, "fit", "seed"),
    (CostsTooMuch, "plan", "and the budget is"),
    (ChangesItsParameters, "parameters", "Cannot clone"),
    (LoadsSomethingElse, "save and load", "predicts differently"),
    (RefusesToPredict, "predictions", "predict raises"),
]


def made(kind, name):
    """One check of a trainer, without the others."""
    from ledgerwood.verification.testing.kit_reports import Checks
    from ledgerwood.verification.testing.trainer_checks import TrainerKit

    checks = Checks()
    checks.make(name, TrainerKit.of(kind(), n_rows=40, alpha=1e-6, seed=0).checks()[name])
    return checks.made[0]


@pytest.mark.slow_after(8)  # fits on neighbours
@pytest.mark.parametrize(("kind", "name", "why"), BROKEN, ids=lambda each: getattr(each, "__name__", str(each)))
def test_each_fault_is_caught_by_name(kind, name, why):
    found = made(kind, name)
    assert found.verdict in ("failed", "not looked at"), found
    assert why in found.why, found
    right = MajorityClassifier if issubclass(kind, MajorityClassifier) else MeanRegressor
    assert made(right, name).verdict == "passed"


def test_what_could_not_be_looked_at_is_no_pass():
    class Opaque(MeanRegressor):
        def fit(self, X, y, ledger=None, sample_weight=None):
            super().fit(X, y, ledger, sample_weight)
            self.helper_ = object()
            return self

    found = made(Opaque, "replay")
    assert found.verdict == "not looked at"
    assert "object" in found.why


@pytest.mark.slow  # a hundred fits
def test_a_system_is_checked_by_its_name(monkeypatch):
    mean = System(title="the mean", regressor=MeanRegressor)
    monkeypatch.setattr("ledgerwood.verification.testing.trainer_kit.system", {"mean": mean}.__getitem__)
    report = check_trainer("mean")
    assert report.ok
    assert report.of == "mean"
    assert report["MeanRegressor: replay"].verdict == "passed"


def test_what_is_no_trainer_is_refused():
    with pytest.raises(InvalidParameter, match="AbstractTrainer"):
        check_trainer(object())
    with pytest.raises(InvalidParameter, match="system='no-such-system'"):
        check_trainer("no-such-system")
