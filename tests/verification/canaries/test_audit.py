import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ledgerwood import Adjacency, Budget, Categorical, Numeric, Schema
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, LedgerCorrupted, SchemaError
from ledgerwood.mechanisms import EllipticalGaussianMechanism
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import ModelAudit, audit_model

LABEL, CLASSES = Numeric("y", -1.0, 1.0), Categorical("y", ("a", "b"))
RNG = np.random.default_rng(11)
ROWS = RNG.integers(0, 2, (20, 8))
LABELS = RNG.uniform(-1.0, 1.0, 20)
NAMES = np.where(LABELS > 0.0, "a", "b")


def binary(features: int, target: Numeric | Categorical = LABEL) -> Schema:
    return Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(features)), target=target)


def forest(**more: Any) -> SGBDTRegressor:
    named = {"epsilon": 4.0, "delta": 1e-5, "schema": binary(8), "n_estimators": 4, "random_state": 0, **more}
    return SGBDTRegressor(**named)


@pytest.mark.slow  # many fits
def test_one_training_shows_most_of_the_price_and_says_what_it_assumes() -> None:
    """256 canaries: mu .925 with a standard error of .13, so that a bound above 1 has 2.9 of them to spare."""
    audit = audit_model(forest(initial_score="zero"), ROWS, LABELS, canaries=256, rng=1)
    assert (audit.assumption, audit.statistic) == ("Gaussian noise", "means over their spread")
    assert audit.epsilon_lower == audit.bounds[0].value
    assert [bound.assumption for bound in audit.bounds] == ["Gaussian noise", "none", "Gaussian noise"]
    assert audit.epsilon_lower > 1.0
    assert not audit.rejected
    assert audit.price == pytest.approx(4.0, rel=1e-4)
    assert audit.mu == pytest.approx(audit.price_mu, rel=1e-4)
    assert (audit.structure, audit.shared, audit.view) == ("fixed", False, "releases")
    assert audit.scored == audit.releases == 4
    assert len(audit.scores.with_row) + len(audit.scores.without) == audit.canaries == 256
    assert 2.0 < audit.epsilon_detectable < 4.0
    assert audit.needed is not None
    assert audit.needed > 1000
    assert "not refuted" in str(audit)
    record = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert record["bounds"][1]["assumption"] == "none"
    assert record["epsilon_lower"] == audit.epsilon_lower


@pytest.mark.slow  # many fits
def test_one_rng_is_one_audit() -> None:
    first, again, other = (
        audit_model(forest(), ROWS, LABELS, canaries=64, trainings=2, rng=seed).to_dict() for seed in (4, 4, 5)
    )
    assert first | {"seconds": 0} == again | {"seconds": 0}
    assert first["scores"] != other["scores"]


def test_noise_is_secure_where_no_seed_is_asked_for() -> None:
    first, again = (
        audit_model(forest(random_state=None), ROWS, LABELS, canaries=32, rng=4).to_dict() for _ in range(2)
    )
    assert first["scores"] != again["scores"]


def test_a_quarter_of_the_noise_is_refuted_by_the_models_own_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    original = EllipticalGaussianMechanism.randomise

    def quiet(self: EllipticalGaussianMechanism, *rest: Any) -> Any:
        return original(EllipticalGaussianMechanism(stddevs=tuple(s / 4.0 for s in self.stddevs)), *rest)

    monkeypatch.setattr(EllipticalGaussianMechanism, "randomise", quiet)
    audit = audit_model(forest(initial_score="zero"), ROWS, LABELS, canaries=256, trainings=2, rng=1)
    assert audit.rejected
    assert audit.epsilon_lower > audit.price
    assert "refuted" in str(audit)


def test_hardly_any_noise_and_no_delta_end_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    original = EllipticalGaussianMechanism.randomise

    def silent(self: EllipticalGaussianMechanism, *rest: Any) -> Any:
        return original(EllipticalGaussianMechanism(stddevs=tuple(s / 1e4 for s in self.stddevs)), *rest)

    monkeypatch.setattr(EllipticalGaussianMechanism, "randomise", silent)
    audit = audit_model(forest(initial_score="zero"), ROWS, LABELS, canaries=256, rng=1)
    assert audit.rejected
    assert 1e6 < audit.epsilon_lower < np.inf
    pure = audit_model(forest(initial_score="zero"), ROWS, LABELS, canaries=256, rng=1, delta=0.0)
    assert (pure.price, pure.rejected, pure.epsilon_lower) == (np.inf, False, np.inf)
    assert pure.bounds[1].value < np.inf


@pytest.mark.slow  # many fits
def test_the_trainers_own_trees_leave_only_guesses() -> None:
    audit = audit_model(forest(n_estimators=20), ROWS, LABELS, canaries=64, structure="own", rng=2)
    assert (audit.structure, audit.shared) == ("own", True)
    assert audit.assumption == "none"
    assert audit.statistic == "guesses of one run"


def test_several_trainings_are_one_run() -> None:
    audit = audit_model(forest(), ROWS, LABELS, canaries=32, trainings=3, rng=3)
    assert {bound.samples for bound in audit.bounds} == {96}


SMALL = {"n_estimators": 1, "max_depth": 1, "initial_score": "zero", "random_state": 0}
SYSTEMS: dict[str, tuple[Any, dict[str, int]]] = {
    "labels": (
        PrivaTreeClassifier(epsilon=2.0, schema=binary(8, CLASSES), split_method="random", random_state=0),
        {"canaries": 64},
    ),
    "labels replaced": (
        PrivaTreeClassifier(
            epsilon=2.0, schema=binary(8, CLASSES), split_method="random", random_state=0, adjacency="replace-one"
        ),
        {"canaries": 64},
    ),
    "gini": (
        PrivaTreeClassifier(epsilon=2.0, schema=binary(8, CLASSES), max_depth=1, random_state=0),
        {"canaries": 1, "trainings": 20},
    ),
    "DPBoost": (
        DPBoostRegressor(epsilon=2.0, schema=binary(8), trees_per_ensemble=1, **SMALL), {"canaries": 1, "trainings":
        20},
    ),
    "DP-XGBoost": (
        DPXGBoostRegressor(epsilon=2.0, schema=binary(8), subsample=0.5, **SMALL), {"canaries": 4, "trainings": 8},
    ),
    "Skellam": (
        FederatedGBDTRegressor(
            epsilon=2.0, delta=1e-5, schema=binary(8), split_method="totally_random", n_estimators=2, noise="skellam",
            initial_score="zero", recalibrate=False, random_state=0,
        ),
        {"canaries": 64},
    ),
    "curvatures": (
        SGBDTClassifier(epsilon=2.0, delta=1e-5, schema=binary(8, CLASSES), n_estimators=4, random_state=0),
        {"canaries": 64},
    ),
    "boosting": (
        PrivateBoostingRegressor(
            epsilon=2.0, delta=1e-5, schema=binary(8), n_estimators=4, max_depth=3, random_state=0
        ),
        {"canaries": 64},
    ),
    "boosted classes": (
        PrivateBoostingClassifier(epsilon=2.0, delta=1e-5, schema=binary(8, CLASSES), n_estimators=4, random_state=0),
        {"canaries": 64},
    ),
    "filtered": (forest(epsilon=2.0, extra_trees=4), {"canaries": 32}),
    "replaced": (forest(epsilon=2.0, adjacency="replace-one"), {"canaries": 64}),
}  # fmt: skip


@pytest.mark.slow_after(1)  # an audit of each system
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_audited_and_not_accused(name: str) -> None:
    """Four audits at alpha 1e-3: one false alarm has probability .004, and the seeds are fixed."""
    model, how = SYSTEMS[name]
    labels = NAMES if model.schema.target == CLASSES else LABELS
    audits = [audit_model(model, ROWS, labels, rng=100 + run, alpha=1e-3, **how) for run in range(4)]
    assert not any(audit.rejected for audit in audits)
    assert all(bound.value <= audit.price for audit in audits for bound in audit.bounds)
    assert all(audit.scored for audit in audits)


@pytest.mark.slow  # a rate of error needs many audits
def test_tiny_audits_are_above_the_price_no_more_often_than_alpha() -> None:
    """40 audits at alpha .2: at most 8 + 3 sqrt(40 .2 .8) = 15.6 of each bound."""
    audits = [
        audit_model(forest(initial_score="zero", n_estimators=1), ROWS, LABELS, canaries=24, rng=200 + run, alpha=0.2)
        for run in range(40)
    ]  # fmt: skip
    above = np.sum([[bound.value > audit.price * (1 + 1e-6) for bound in audit.bounds] for audit in audits], axis=0)
    assert (above <= 15).all()
    assert sum(audit.rejected for audit in audits) <= 15


@pytest.mark.slow  # many fits
def test_what_is_predicted_tells_too() -> None:
    """Each canary's leaf has 200 known rows; the area of the scores is Phi(.925 / sqrt 2) = .74 at best, se .03."""
    model = forest(n_estimators=1, initial_score="zero", pooling=0.0, max_delta_step=1e3, reg_lambda=1e-3)
    audit = audit_model(model, ROWS, LABELS, canaries=256, view="predictions", rng=5)
    assert (audit.view, audit.assumption, audit.scored) == ("predictions", "none", 0)
    assert not audit.rejected
    wins = audit.scores.with_row[:, np.newaxis] > audit.scores.without
    assert wins.mean() == pytest.approx(0.74, abs=4 * 0.03)


@pytest.mark.parametrize(
    ("learner", "labels"),
    [(DecisionTreeRegressor(random_state=0), LABELS), (DecisionTreeClassifier(random_state=0), NAMES)],
    ids=["numbers", "classes"],
)
def test_a_learner_without_privacy_shows_all(learner: Any, labels: np.ndarray) -> None:
    """It learns every canary by heart: 200 right guesses of 200 are more than epsilon 3."""
    schema = None if isinstance(learner, DecisionTreeRegressor) else binary(8, CLASSES)
    audit = audit_model(learner, ROWS.astype(float), labels, canaries=200, rng=6, schema=schema)
    assert audit.epsilon_lower > 2.0
    assert (audit.price, audit.rejected, audit.needed) == (np.inf, False, None)
    assert audit.to_dict()["price"] is None
    claimed = Budget(epsilon=1.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE)
    refuted = audit_model(learner, ROWS.astype(float), labels, canaries=200, rng=6, schema=schema, claim=claimed)
    assert refuted.rejected
    assert refuted.price == pytest.approx(1.0)


def test_a_learner_may_be_any_object() -> None:
    class Mean:
        def fit(self, X: Any, y: Any) -> None:
            self.mean = float(np.mean(y))

        def predict(self, X: Any) -> np.ndarray:
            return np.full(len(X), self.mean)

    audit = audit_model(Mean(), ROWS, LABELS, canaries=50, rng=7)
    assert audit.epsilon_lower < 2.0
    assert audit.system == "Mean"


class Sums(RegressorMixin, BaseEstimator):
    """A Laplace sum of labels in each of 64 cells: epsilon 1 for a row that comes or goes, labels within [-1, 1]."""

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "Sums":
        source = self.random_state
        if not isinstance(source, np.random.Generator | np.random.RandomState):
            source = np.random.default_rng(source)
        sums = np.bincount(self.cells(X), np.clip(y, -1.0, 1.0), minlength=64)
        self.sums_ = sums + source.laplace(scale=1.0, size=64)
        return self

    def predict(self, X: Any) -> Any:
        return self.sums_[self.cells(X)]

    @staticmethod
    def cells(X: Any) -> Any:
        return np.clip((np.asarray(X)[:, 0] * 64.0).astype(int), 0, 63)


class HiddenSums:
    """The same, with a generator that nobody knows of: every copy goes on from one state."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(5)

    def fit(self, X: Any, y: Any) -> None:
        self.model = Sums(self.generator).fit(X, y)

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)


ONE = Schema(features=(Numeric("x", 0.0, 1.0),), target=LABEL)
ORIGIN = {"X": np.array([[0.5]]), "y": np.array([0.0])}
PURE = LaplaceEvent(noise_multiplier=1.0, adjacency=Adjacency.ADD_REMOVE)


@pytest.mark.parametrize(
    "learner",
    [
        Sums(7),
        Sums(np.random.RandomState(7)),
        Sums(np.random.default_rng(7)),
        TransformedTargetRegressor(Sums(np.random.default_rng(7)), check_inverse=False),
    ],
    ids=["seed", "state", "generator", "part"],
)
def test_a_seeded_learner_that_keeps_its_claim_is_not_accused(learner: Any) -> None:
    """One noise in all fits would show all 640 coins: epsilon 2 and more. Fresh noise is above 1 once in 20 at most."""
    audit = audit_model(learner, **ORIGIN, canaries=32, trainings=20, schema=ONE, claim=PURE, rng=1)
    assert not audit.rejected
    assert audit.epsilon_lower < 1.0
    assert len(np.unique(audit.scores.with_row)) == len(audit.scores.with_row)


def test_noise_that_every_copy_repeats_is_not_taken_away() -> None:
    """Right guesses of 32 coins by scores without any noise would be an epsilon of 1.5."""
    audit = audit_model(HiddenSums(), **ORIGIN, canaries=32, schema=ONE, claim=PURE, rng=1)
    assert not audit.rejected
    assert audit.epsilon_lower < 1.0
    with pytest.raises(InvalidParameter, match="HiddenSums ignores its seed, or adds no noise: .* at all 32 canaries"):
        audit_model(HiddenSums(), **ORIGIN, canaries=32, trainings=2, schema=ONE, claim=PURE, rng=1)


def test_trainings_of_one_random_state_do_not_share_noise() -> None:
    audit = audit_model(
        forest(random_state=np.random.RandomState(3), n_estimators=1), ROWS, LABELS, canaries=8, trainings=2, rng=2
    )
    scores = np.concatenate((audit.scores.with_row, audit.scores.without))
    assert len(np.unique(scores.round(9))) == 16


class Rows:
    """Predicts how many rows there were, and a little noise: public under replace-one."""

    def fit(self, X: Any, y: Any) -> None:
        self.shown = len(X) - 50.0 + np.random.default_rng().normal(scale=1e-9)

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.shown)


def test_neighbours_are_those_of_the_claim() -> None:
    """The number of rows is no breach of a replace-one claim; of an add-remove claim it is one."""
    named: dict[str, Any] = {**ORIGIN, "canaries": 1, "trainings": 60, "schema": ONE, "rng": 3}
    claims = {each: Budget(epsilon=1.0, delta=1e-5, adjacency=each) for each in Adjacency}
    assert audit_model(Rows(), claim=claims[Adjacency.ADD_REMOVE], **named).rejected
    assert not audit_model(Rows(), claim=claims[Adjacency.REPLACE_ONE], **named).rejected
    with pytest.raises(AdjacencyMismatch, match="what Rows takes for a null row is not known"):
        audit_model(Rows(), claim=claims[Adjacency.ZERO_OUT], **named)


def test_classes_may_be_numbers_and_one_may_be_missing() -> None:
    learner, rows = DecisionTreeClassifier(random_state=0), np.array([[0.5], [0.2]])
    assert audit_model(learner, rows, np.array([0, 1]), canaries=32, rng=1).epsilon_lower > 1.0
    schema = Schema(features=(Numeric("x", 0.0, 1.0),), target=Categorical("y", (0, 1, 2)))
    missing = audit_model(learner, rows[:1], np.array([0]), canaries=8, fill=0, schema=schema, alpha=0.3, rng=1)
    assert np.all(missing.scores.without <= missing.scores.with_row.max())


@pytest.mark.slow  # many fits
def test_of_other_learners_nobody_knows_who_shares_a_leaf() -> None:
    assert audit_model(Sums(1), **ORIGIN, canaries=32, schema=ONE, rng=1).shared
    named: dict[str, Any] = {"canaries": 16, "view": "predictions", "rng": 5}
    assert audit_model(forest(n_estimators=1), ROWS, LABELS, structure="own", **named).shared
    assert not audit_model(forest(n_estimators=1), ROWS, LABELS, **named).shared


def test_frames_are_read_by_name() -> None:
    frame = pl.DataFrame({f"b{i}": ROWS[:, i] for i in reversed(range(8))})
    audits = [audit_model(forest(), X, LABELS, canaries=16, rng=8).to_dict() for X in (frame, ROWS)]
    assert audits[0] | {"seconds": 0} == audits[1] | {"seconds": 0}


@pytest.mark.slow  # many fits
def test_the_structure_check_is_part_of_it_where_it_is_asked_for() -> None:
    audit = audit_model(forest(), ROWS, LABELS, canaries=16, rng=8, check_structure=True)
    assert audit.structure_check is not None
    assert audit.structure_check.independent
    bought = audit_model(
        SYSTEMS["DPBoost"][0], ROWS, LABELS, canaries=1, trainings=8, rng=8, check_structure=True
    )  # fmt: skip
    assert bought.structure_check is None


def test_a_model_with_another_ledger_or_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = forest().fit(ROWS, LABELS).ledger_
    original = SGBDTRegressor.fit

    def swapped(self: Any, *rest: Any, **named: Any) -> Any:
        original(self, *rest, **named)
        self.ledger_ = other
        return self

    monkeypatch.setattr(SGBDTRegressor, "fit", swapped)
    with pytest.raises(LedgerCorrupted, match="it is another model's ledger"):
        audit_model(forest(random_state=None), ROWS, LABELS, canaries=16)

    def without(self: Any, *rest: Any, **named: Any) -> Any:
        original(self, *rest, **named)
        del self.ledger_
        return self

    monkeypatch.setattr(SGBDTRegressor, "fit", without)
    with pytest.raises(LedgerCorrupted, match="SGBDTRegressor has no ledger_ or no privacy_"):
        audit_model(forest(), ROWS, LABELS, canaries=16)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"canaries": 300}, r"canaries=300 must be at most 256, the cells of this schema"),
        ({"canaries": 5}, r"canaries x trainings = 5 is too few for any bound at alpha=0.05: .* 6 would"),
        ({"canaries": 0}, "canaries=0 must be a whole number >= 1"),
        ({"alpha": 0.7}, "alpha=0.7 must be"),
        ({"trainings": 0}, "trainings=0 must be"),
        ({"rng": "seed"}, "rng='seed' must be a numpy Generator, or a whole number >= 0"),
        ({"view": "weights"}, "view='weights' must be"),
        ({"structure": "odd"}, "structure='odd' must be"),
        ({"guesses": (60, 60)}, r"guesses=\(60, 60\) must be 1 to 64 together"),
        ({"delta": 1.5}, "delta=1.5 must be"),
        ({"fill": -1}, "fill=-1 must be"),
        ({"schema": binary(8)}, "SGBDTRegressor has a schema of its own"),
    ],
)
def test_bad_parameters_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        audit_model(forest(), ROWS, LABELS, **{"canaries": 64, **named})


@pytest.mark.slow  # many fits
def test_bad_estimators_and_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="object has no fit method"):
        audit_model(object(), ROWS, LABELS)
    with pytest.raises(InvalidParameter, match="SGBDTRegressor is a class"):
        audit_model(SGBDTRegressor, ROWS, LABELS)
    with pytest.raises(InvalidParameter, match="view='releases': Ridge keeps no ledger"):
        audit_model(Ridge(), ROWS, LABELS, canaries=10, view="releases")
    with pytest.raises(InvalidParameter, match="schema=None: canaries are put into the cells of a declared schema"):
        audit_model(forest(schema=None), ROWS, LABELS, canaries=10)
    with pytest.raises(SchemaError, match="X has 7 columns, but the schema declares 8"):
        audit_model(forest(), ROWS[:, 1:], LABELS, canaries=10)
    with pytest.raises(SchemaError, match=r"X has 20 rows, and y has shape \(19,\)"):
        audit_model(forest(), ROWS, LABELS[1:], canaries=10)
    with pytest.raises(SchemaError, match="1 row at least"):
        audit_model(forest(), ROWS[:0], LABELS[:0], canaries=10)
    with pytest.raises(InvalidParameter, match="columns that are no numbers: give audit_model a schema="):
        audit_model(Ridge(), ROWS.astype(str).astype(object) + "x", LABELS, canaries=10)
    with pytest.raises(InvalidParameter, match="is by leaf, so that it tells nothing of one of several"):
        audit_model(
            FederatedGBDTRegressor(epsilon=2.0, delta=1e-5, schema=binary(8), split_method="histogram", random_state=0),
            ROWS, LABELS, canaries=10,
        )  # fmt: skip


def test_predictions_that_are_no_numbers_are_refused() -> None:
    class Broken:
        def fit(self, X: Any, y: Any) -> None:
            pass

        def predict(self, X: Any) -> np.ndarray:
            return np.full(len(X), np.nan)

    with pytest.raises(InvalidParameter, match="are not finite; one finite number per canary is needed, 10"):
        audit_model(Broken(), ROWS, LABELS, canaries=10)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([[1.0], [1.0, 2.0]], "of Told cannot be read: .* one finite number per canary is needed, 10"),
        (["no"] * 10, "of Told cannot be read: .* one finite number per canary is needed, 10"),
        ([0.0] * 9, "of Told cannot be read: .* one finite number per canary is needed, 10"),
        ([np.inf] * 10, "are not finite"),
        ([[0.0]] * 10, r"have shape \(10, 10\)"),
    ],
)
def test_predictions_of_other_kinds_and_shapes_are_refused(predictions: Any, message: str) -> None:
    class Told:
        def fit(self, X: Any, y: Any) -> None:
            pass

        def predict(self, X: Any) -> Any:
            return predictions

    with pytest.raises(InvalidParameter, match=message):
        audit_model(Told(), ROWS, LABELS, canaries=10)


def test_constant_predictions_tell_nothing() -> None:
    class Constant:
        def fit(self, X: Any, y: Any) -> None:
            pass

        def predict(self, X: Any) -> np.ndarray:
            return np.zeros(len(X))

    found = audit_model(Constant(), ROWS, LABELS, canaries=10, rng=1)
    assert found.epsilon_lower < 1.0  # 10 ties in random order: 9 right guesses of 10 have probability .011
    assert not found.rejected


def test_an_estimator_that_raises_is_heard() -> None:
    class Failing(Ridge):
        def fit(self, X: Any, y: Any) -> Any:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        audit_model(Failing(), ROWS, LABELS, canaries=10)


def test_the_result_is_frozen() -> None:
    assert ModelAudit.__dataclass_params__.frozen  # type: ignore[attr-defined]
