"""Audits of what fitted models show: breaches are caught, right learners are not accused, the hook reads all kinds."""

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from benchmarks.auditing_learners import SGD_CLAIM, NoisyGaussianNB, NoisySGD
from ledgerwood import Adjacency, Budget, Categorical, LaplaceEvent, Numeric, PrivacyWarning, Schema
from ledgerwood.errors import AdjacencyMismatch, AuditFailed, InvalidParameter
from ledgerwood.trainers import PrivaTreeClassifier
from ledgerwood.verification import audit_model
from ledgerwood.verification.canaries.released_fits import ManyFits
from ledgerwood.verification.canaries.released_values import Encoder, Layout, Shown, shown

A = Adjacency.ADD_REMOVE
GENERATOR = np.random.default_rng(20)
ROWS = GENERATOR.normal(size=(60, 3))
CLASSES = (ROWS[:, 0] > 0.0).astype(int)
NUMBERS = np.clip(ROWS[:, 1], -1.0, 1.0)


def budget(epsilon: float, delta: float = 0.0, adjacency: Adjacency = A) -> Budget:
    return Budget(epsilon=epsilon, delta=delta, adjacency=adjacency)


class Sum:
    """A sum of labels within [-1, 1], with Laplace noise: epsilon is 1 / scale for a row more or less."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, X: Any, y: Any) -> None:
        self.sum_ = float(np.clip(y, -1.0, 1.0).sum() + np.random.laplace(scale=self.scale))  # noqa: NPY002

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.sum_)


def audited(learner: Any, labels: Any = NUMBERS, **named: Any) -> Any:
    return audit_model(learner, ROWS, labels, **{"released": "attributes", "fits": 1000, "rng": 1, **named})


@pytest.mark.slow  # a thousand fits
@pytest.mark.parametrize(
    ("learner", "claim"),
    [
        (NoisyGaussianNB(1.0, random_state=0), budget(1.0)),
        (NoisySGD(1 / 30, random_state=0), budget(5.0, 1e-5)),
    ],
    ids=["bounds from the rows", "a thirtieth of the noise"],
)
def test_breaches_that_predictions_do_not_show_are_caught(learner: Any, claim: Budget) -> None:
    """Both data sets are told apart in every fit: the bound is what so few fits can show at most."""
    audit = audited(learner, CLASSES, claim=claim, fits=2000)
    assert audit.rejected
    assert audit.epsilon_lower > 4.5
    assert audit.epsilon_lower <= audit.epsilon_ceiling
    assert audit.view == "fitted"
    assert not audit.weaknesses
    assert any(name in audit.bounds[0].event for name in ("theta_", "var_", "class_prior_", "coef_", "of all values"))
    record = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert record["attack"].startswith("one row more or less beside 16: ")


@pytest.mark.slow  # a thousand fits
@pytest.mark.parametrize(
    ("learner", "claim"),
    [(NoisyGaussianNB(1.0, bounds=(-3.0, 3.0), random_state=0), budget(1.0)), (NoisySGD(random_state=0), SGD_CLAIM)],
    ids=["bounds declared", "all of the noise"],
)
def test_the_right_versions_of_both_are_not_accused(learner: Any, claim: Any) -> None:
    """Two audits at alpha .001: one false refusal has probability .002, and the seeds are fixed."""
    audits = [audited(learner, CLASSES, claim=claim, rng=seed, alpha=1e-3) for seed in (1, 2)]
    assert not any(audit.rejected for audit in audits)
    assert all(bound.value <= audit.price for audit in audits for bound in audit.bounds)


@pytest.mark.slow  # a rate of error needs many audits
def test_bounds_are_above_the_truth_no_more_often_than_alpha() -> None:
    """Ten audits at alpha .2 of exactly epsilon 1: more than 6 above it have probability .0009."""
    audits = [
        audited(Sum(), claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), rng=seed, alpha=0.2) for seed in range(10)
    ]
    assert sum(audit.bounds[0].value > 1.0 for audit in audits) <= 6
    assert sum(audit.rejected for audit in audits) <= 6
    assert (
        np.mean([audit.epsilon_lower for audit in audits]) > 0.3
    )  # and they see it: .6 is what a perfect attack shows


@pytest.mark.slow  # many fits
def test_half_of_the_noise_is_caught_under_either_relation() -> None:
    """Scale 1/2 is epsilon 2 under add-remove and 4 under replace-one: half of it is refuted, the truth is not."""
    for adjacency, truth in ((A, 2.0), (Adjacency.REPLACE_ONE, 4.0)):
        audit = audited(Sum(0.5), claim=budget(0.5 * truth, adjacency=adjacency), fits=2000)
        assert audit.rejected
        assert audit.epsilon_lower <= truth
        assert ("replaced" in audit.attack) == (adjacency is Adjacency.REPLACE_ONE)
        assert not audited(Sum(0.5), claim=budget(truth, adjacency=adjacency), alpha=1e-3).rejected
    with pytest.raises(AdjacencyMismatch, match="what Sum takes for a null row is not known"):
        audited(Sum(), claim=budget(1.0, adjacency=Adjacency.ZERO_OUT))


class Shape:
    """Releases what its function says of the labels and of fresh noise, without any attribute."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def fit(self, X: Any, y: Any) -> "Shape":
        self.found = self.value(np.asarray(y), np.random.default_rng())
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@pytest.mark.parametrize(
    "value",
    [
        lambda y, rng: ("text", 0.1 * rng.laplace() + y.sum()),
        lambda y, rng: {"note": "a", "sum": f"{0.1 * rng.laplace() + y.sum():.17g}"},
        lambda y, rng: [rng.normal(size=3), {"more": np.array([0.1 * rng.laplace() + y.sum()], dtype=np.float32)}],
        lambda y, rng: rng.normal(size=len(y)),
        lambda y, rng: np.array([(1, 0.1 * rng.laplace() + y.sum())], dtype=[("a", "i4"), ("b", "f8")]),
        lambda y, rng: 2**60 + round(rng.laplace() + y.sum()) * 2**10,
        lambda y, rng: complex(rng.normal(), 0.1 * rng.laplace() + y.sum()),
        lambda y, rng: {f"key {len(y)}": rng.normal()},
        lambda y, rng: np.nan if y.sum() > 5.0 and rng.random() < 0.9 else rng.normal(),
    ],
    ids=["tuple", "text", "nested", "length", "record", "long", "complex", "key", "nan"],
)
def test_the_hook_reads_numbers_texts_arrays_and_what_holds_them(value: Any) -> None:
    """Each is far beyond epsilon 1 for one row more."""
    audit = audited(Shape(value), released=lambda model: model.found, claim=budget(1.0), canary=(np.zeros(3), 50.0))
    assert audit.rejected
    assert audit.epsilon_lower > 1.5


@pytest.mark.slow  # many fits
def test_many_columns_of_noise_do_not_hide_a_small_shift_in_all_of_them() -> None:
    """500 columns, each moved by a third of its noise: by their sum, 7.5 standard deviations."""
    value = lambda y, rng: (len(y) - 16) / 3.0 + rng.normal(size=500)  # noqa: E731
    audit = audited(Shape(value), released=lambda model: model.found, claim=budget(1.0), canary=(np.zeros(3), 0.0))
    assert audit.epsilon_lower > 3.0


def test_what_is_not_a_number_is_named_or_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"released\(model\) returned Shape with a part that is no number"):
        audited(Sum(), released=lambda model: Shape(None))
    with pytest.raises(AuditFailed, match="released= raised AttributeError on a fitted Sum"):
        audited(Sum(), released=lambda model: model.weights)
    read = shown(PrivaTreeClassifier(), "attributes")
    assert read.columns == {}


class Holding(BaseEstimator):
    def fit(self, X: Any, y: Any) -> "Holding":
        self.total_, self.of_, self._private_, self.plain = 3.0, object(), 1.0, 2.0
        self.parts_ = [DecisionTreeClassifier(random_state=0).fit(X, y)]
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def test_attributes_are_those_that_end_in_an_underscore_and_those_of_parts() -> None:
    read = shown(Holding().fit(ROWS, CLASSES), "attributes")
    assert read.skipped == ("of_",)
    assert read.columns["total_"].tolist() == [3.0]
    assert {"parts_[0].tree_.threshold", "parts_[0].tree_.value", "parts_[0].n_features_in_"} <= set(read.columns)
    assert not {"plain", "_private_"} & set(read.columns)
    piped = make_pipeline(FunctionTransformer(), BaggingClassifier(DecisionTreeClassifier(), n_estimators=2))
    names = shown(piped.fit(ROWS, CLASSES), "attributes").columns
    assert any(name.startswith("steps[1][1].estimators_[1].tree_") for name in names)


class Keeping(Sum):
    def fit(self, X: Any, y: Any) -> None:
        super().fit(X, y)
        self.secret_ = object()


def test_attributes_that_could_not_be_read_are_a_note() -> None:
    audit = audited(Keeping(), claim=budget(1.0))
    assert any("were not looked at: secret_;" in note for note in audit.notes)
    assert "secret_" in str(audit)


class Hidden:
    """Every copy goes on from one state of a generator that nobody knows of."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(5)

    def fit(self, X: Any, y: Any) -> None:
        self.sum_ = float(np.clip(y, -1.0, 1.0).sum() + self.generator.laplace())

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.sum_)


def test_one_noise_in_all_fits_is_refused() -> None:
    with pytest.raises(
        InvalidParameter, match="Hidden ignores its seed, or adds no noise: .* released the same values"
    ):
        audited(Hidden(), claim=budget(1.0))


def test_what_never_varies_is_a_bound_of_zero_that_says_so() -> None:
    with pytest.warns(PrivacyWarning, match="the bound 0 is far below what could have been found"):
        audit = audited(Sum(), released=lambda model: 7.0, claim=budget(1.0))
    assert (audit.epsilon_lower, audit.rejected) == (0.0, False)
    assert any("could see nothing" in note for note in audit.notes)
    assert "far below" in str(audit)


class Strict:
    """Refuses rows beyond 100, and adds up with noise."""

    def fit(self, X: Any, y: Any) -> None:
        if np.abs(X).max() > 100.0:
            raise ValueError("a value beyond 100")
        self.sum_ = float(np.clip(y, -1.0, 1.0).sum() + np.random.default_rng().laplace())

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.sum_)


@pytest.mark.slow  # many fits
def test_refused_canaries_are_left_out_and_said_to_tell() -> None:
    audit = audited(Strict(), claim=budget(1.0), alpha=1e-3)
    assert not audit.rejected
    assert any("refused them in every fit" in note and "a value beyond 100" in note for note in audit.notes)
    with pytest.raises(AuditFailed, match="raised in every fit with a canary, and not without one"):
        audited(Strict(), claim=budget(1.0), canary=(np.full(3, 1e3), 0.0))
    with pytest.raises(AuditFailed, match="cannot be fitted on the background alone"):
        audit_model(Strict(), ROWS + 500.0, NUMBERS, released="attributes", fits=1000, claim=budget(1.0))


def test_a_declared_schema_keeps_canaries_within_it() -> None:
    class Seen(Sum):
        def fit(self, X: Any, y: Any) -> None:
            assert np.abs(X).max() <= 4.0
            assert np.abs(y).max() <= 1.0
            super().fit(X, y)

    schema = Schema(features=tuple(Numeric(f"x{i}", -4.0, 4.0) for i in range(3)), target=Numeric("y", -1.0, 1.0))
    audit = audited(Seen(), claim=budget(0.25), schema=schema)
    assert audit.rejected
    assert not audit.notes


@pytest.mark.slow  # starts processes, which import everything
def test_processes_change_nothing_and_fits_have_seeds_of_their_own() -> None:
    """Of a learner with a seed, and of one that draws from the global generator, which processes would share."""
    rows = (ROWS[:8], CLASSES[:8])
    for learner in (NoisySGD(0.5, random_state=0), BaggingClassifier(DecisionTreeClassifier(), n_estimators=3)):
        alone, two = (
            ManyFits(learner, "attributes", jobs, 64, lambda _done, _all: None)(rows, 64, np.random.default_rng(1))
            for jobs in (1, 2)
        )
        tables = [Layout.of(alone).rows(found) for found in (alone, two)]
        np.testing.assert_array_equal(*tables)
        assert len(np.unique(np.nan_to_num(tables[0]), axis=0)) == 64


@pytest.mark.slow  # starts processes, which import everything
def test_a_learner_that_no_process_can_be_given_is_named() -> None:
    class Unpicklable(Sum):
        def __reduce__(self) -> Any:
            raise TypeError("it holds a lock")

        def __deepcopy__(self, memo: Any) -> Any:
            return Unpicklable(self.scale)

    with pytest.raises(InvalidParameter, match=r"cannot be handed to another process .*: set n_jobs=1"):
        audited(Unpicklable(), claim=budget(1.0), n_jobs=2)


def test_the_global_generator_of_the_caller_is_left_as_it_was() -> None:
    np.random.seed(4)  # noqa: NPY002
    first = np.random.get_state()[1].tolist()  # noqa: NPY002
    audited(Sum(), claim=budget(1.0))
    assert np.random.get_state()[1].tolist() == first  # noqa: NPY002


@pytest.mark.slow  # a thousand fits of a whole trainer, ledger included
def test_our_own_estimators_keep_to_their_schema_and_claim_their_plan() -> None:
    schema = Schema(
        features=(Categorical("a", ("x", "y")), Categorical("b", ("x", "y"))), target=Categorical("c", ("n", "p"))
    )
    rows = np.array([["x", "x"], ["y", "x"], ["x", "y"], ["y", "y"]], dtype=object)
    model = PrivaTreeClassifier(epsilon=1.0, schema=schema, max_depth=1, split_method="random")
    audit = audit_model(
        model, rows, np.array(["n", "p", "n", "p"]), released="attributes", fits=1000, rng=1, alpha=1e-3
    )
    assert audit.price == pytest.approx(1.0, rel=1e-3)
    assert not audit.rejected


def test_nothing_claimed_is_a_bound_beside_what_could_be_shown() -> None:
    audit = audited(Sum(0.1))
    assert (audit.price, audit.rejected, audit.claim) == (math.inf, False, None)
    assert math.isnan(audit.epsilon_detectable)
    assert 3.0 < audit.epsilon_lower <= audit.epsilon_ceiling


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"released": "weights"}, "released='weights' must be a function of the fitted model, or 'attributes'"),
        ({"fits": 10}, "fits=10 must be a whole number >= 1000"),
        ({"n_jobs": 0}, "n_jobs=0 must be"),
        ({"canaries": 5}, "canaries: not used with released="),
        ({"trainings": 5, "view": "predictions"}, "view, trainings: not used with released="),
        ({"released": None}, "fits: not used without released="),
        ({"released": None, "fits": None, "view": "fitted"}, "view='fitted' needs released="),
        ({"canary": (np.zeros(2), 0.0)}, "canary has 2 values, and X has 3 columns"),
        ({"canary": 3}, "canary=3 must be a row and its label"),
        ({"canary": (("a", "b", "c"), 0.0)}, "canary does not fit the background's columns"),
        ({"background": 0}, "background=0 must be"),
        ({"mode": "one_mechanism"}, "Sum is not an estimator of this library"),
        ({"mode": "half"}, "mode='half' must be"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        audited(Sum(), **named)


def test_a_layout_is_fixed_by_the_fits_it_was_learned_from() -> None:
    """Columns by hand: two flags, then each part with its length where that varied."""
    learned = [Shown(columns={"a": np.array([1.0]), "b": np.array([1.0, 2.0])}), Shown(columns={"b": np.array([3.0])})]
    layout = Layout.of(learned)
    assert layout.columns == (
        "whether the fit failed", "whether a part was new", "the length of a", "a", "the length of b", "b[0]", "b[1]",
    )  # fmt: skip
    later = [
        Shown(columns={}, failure="ValueError: no"),
        Shown(columns={"b": np.array([4.0, 5.0, 6.0]), "c": np.array([9.0])}),
    ]
    nan = math.nan
    expected = [[1.0, 0.0, 0.0, nan, 0.0, nan, nan], [0.0, 1.0, 0.0, nan, 2.0, 4.0, 5.0]]
    np.testing.assert_array_equal(layout.rows(later), expected)
    encoder = Encoder.learned(learned[:1], learned[1:])
    assert encoder(later).shape == (2, len(encoder.names))
