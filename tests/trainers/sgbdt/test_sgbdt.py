"""S-GBDT: every option's plan costs what the ledger charged, and the leaves are what plain numpy finds."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.curator import Curator, Table
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, DrawRefused, InvalidParameter, UnsupportedEvent
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.sgbdt.training import train
from ledgerwood.verification import verify_ledger

FEATURES = (
    lw.Numeric("size", 0.0, 1.0),
    lw.Categorical("colour", ("red", "blue")),
    lw.Numeric("age", 0, 100, missing=True),
)
REGRESSION = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0.0, 10.0))
CLASSIFICATION = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no", "yes")))
ALMOST_NO_NOISE = 1e12
KINDS = {"squared": (SGBDTRegressor, REGRESSION), "logistic": (SGBDTClassifier, CLASSIFICATION)}


def rows(n, seed=0):
    generator = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(["red", "blue", "green"], n)
    X[:, 2] = np.where(generator.random(n) < 0.2, np.nan, generator.uniform(-5, 105, n))
    signal = X[:, 0].astype(float) * 6 + np.where(X[:, 1] == "red", 3.0, 0.0)
    return X, signal + generator.uniform(0, 1, n)


def labels(loss, y):
    return y if loss == "squared" else np.where(y > 5, "yes", "no")


def fitted(loss, *, n=60, epsilon=1.0, **options):
    kind, schema = KINDS[loss]
    X, y = rows(n)
    small = {"n_estimators": 2, "max_depth": 2, "max_bins": 8, "reg_lambda": 3.0}
    model = kind(epsilon=epsilon, delta=1e-6, schema=schema, **(small | options))
    return model.fit(X, labels(loss, y)), X, y


STATISTICS = [
    ("squared", "dynamic", "moments"),
    ("squared", "static", None),
    ("logistic", "dynamic", "moments"),
    ("logistic", "dynamic", "curvature"),
    ("logistic", "static", None),
]
RELATIONS = [
    ("add-remove", 1.0), ("add-remove", 0.3), ("zero-out", 1.0), ("zero-out", 0.3), ("replace-one", 1.0),
]  # fmt: skip
COMBINATIONS = [
    (*statistic, *relation, initial)
    for (i, statistic), (j, relation), (k, initial) in itertools.product(
        enumerate(STATISTICS), enumerate(RELATIONS), enumerate(("zero", "moments", "laplace"))
    )
    # Full batch is cheap to price; of the sampled plans a third will do, in which all pairs of options occur.
    if relation[1] == 1.0 or (i + j + k) % 3 == 0
] + [(*statistic, "replace-one", 1.0, "public_count") for statistic in STATISTICS]


@pytest.mark.slow_after(3)  # fits any combination of the components
@pytest.mark.parametrize(("loss", "leaf_noise", "statistic", "adjacency", "rate", "initial"), COMBINATIONS)
def test_every_combination_costs_at_most_the_budget_and_what_the_ledger_says(
    loss, leaf_noise, statistic, adjacency, rate, initial
):
    model, _, _ = fitted(
        loss, leaf_noise=leaf_noise, leaf_statistic=statistic, adjacency=adjacency, subsample=rate,
        initial_score=initial, expected_rows=60,
    )  # fmt: skip
    plan, privacy = model.plan_, model.privacy_
    priced = lw.price(plan.event).epsilon(1e-6)
    assert plan.event.adjacency is Adjacency(adjacency)
    assert 0.99 < priced <= 1.0
    grants = [entry for entry in model.ledger_.entries if isinstance(entry, GrantEntry)]
    draws = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert [grant.event for grant in grants] == [plan.event]
    assert grants[0].charge.epsilon == priced == privacy.epsilon
    # Everything that was granted was drawn, once each.
    assert len(draws) == sum(count for _, count in plan.event.draws()) == len(plan.initial.events) + 2
    assert (privacy.certified, privacy.randomness, privacy.adjacency.value) == (True, "secure", adjacency)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("squared", {"initial_score": "moments"}),
        ("squared", {"initial_score": "laplace", "subsample": 0.3}),
        ("logistic", {"leaf_statistic": "curvature", "adjacency": "replace-one"}),
    ],
)
def test_a_stranger_adds_the_same_total_up(loss, options):
    model, _, _ = fitted(loss, **options)
    report = verify_ledger(model.ledger_, head=model.privacy_.ledger_head)
    (grant,) = report.verdicts
    # The larger of what was charged and of the verifier's own upper bound, which is a little above the truth.
    assert grant.verdict == "confirmed"
    assert grant.charge == pytest.approx(model.privacy_.epsilon, rel=1e-9)
    assert report.epsilon_readded == max(grant.charge, grant.upper) <= 1.0001 * grant.charge
    assert (report.grants, report.draws, report.randomness) == (1, 2 + len(model.plan_.initial.events), "secure")


PUBLISHED = {
    # rounds, depth, sampling rate, learning rate, clip, damping and its rule, leaf statistic, initial score
    "squared": (150, 2, 0.1, 0.1, 0.1, 15.0, "floor", "moments", "laplace"),
    "logistic": (200, 6, 1.0, 0.1, 0.5, 10.0, "add", "curvature", "zero"),
}


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("loss", PUBLISHED)
def test_the_papers_preset_is_the_published_one(loss):
    kind, schema = KINDS[loss]
    plan = kind(epsilon=0.5, delta=1e-6, schema=schema, preset="paper").make_plan(schema)
    assert PUBLISHED[loss] == (
        plan.n_estimators, plan.max_depth, plan.subsample, plan.learning_rate, plan.clip, plan.reg_lambda,
        plan.lambda_rule,
        plan.leaf_statistic, plan.initial_score,
    )  # fmt: skip
    assert plan.leaf_noise == "dynamic"
    assert lw.price(plan.event).epsilon(1e-6) <= 0.5
    if loss == "squared":
        # Theorem 10 in the code's units: count sigma / sqrt(2 r1), gradient g* sigma / sqrt(2 r2), at one sigma.
        count, gradient = plan.leaf_mechanism.stddevs
        assert count * math.sqrt(2 * 0.2) == pytest.approx(gradient / 0.1 * math.sqrt(2 * 0.8), rel=1e-12)
    model = kind(epsilon=0.5, delta=1e-6, schema=schema, preset="paper", n_estimators=2)
    X, y = rows(30)
    assert len(model.fit(X, labels(loss, y)).ensemble_.trees) == 2


def leaf_of(column, structure):
    node = 0
    for _ in range(structure.depth):
        cell, split = column[structure.feature[node]], structure.split[node]
        node = 2 * node + (1 if (cell == split if structure.equals[node] else cell < split) else 2)
    return node - (structure.n_leaves - 1)


def boosted_by_hand(plan, structures, cells, targets):
    """The same algorithm without noise, from its description: initial score, then minus the damped mean gradients."""
    n = len(targets)
    start = 0.0
    if plan.initial_score != "zero":
        start = min(max(targets.sum() / n, -1.0), 1.0)
        if plan.loss == "logistic":
            p = (1.0 + min(max(start, -0.98), 0.98)) / 2.0
            start = math.log(p / (1.0 - p))
    scores, values = np.full(n, start), []
    for structure in structures:
        leaf = np.array([leaf_of(column, structure) for column in cells.T])
        if plan.loss == "squared":
            gradient, hessian = scores - targets, np.ones(n)
        else:
            p = 1.0 / (1.0 + np.exp(-scores))
            gradient, hessian = p - (targets + 1.0) / 2.0, p * (1.0 - p)
        if plan.leaf_statistic == "moments":
            hessian = np.ones(n)
        gradient = np.clip(gradient, -plan.clip, plan.clip)
        G = np.bincount(leaf, gradient, minlength=structure.n_leaves)
        H = np.bincount(leaf, hessian, minlength=structure.n_leaves)
        if plan.leaf_noise == "dynamic":
            H = (1.0 - plan.pooling) * H + plan.pooling * H.mean()
        below = np.maximum(H, plan.reg_lambda) if plan.lambda_rule == "floor" else H + plan.reg_lambda
        value = plan.learning_rate * np.clip(-G / below, -plan.max_delta_step, plan.max_delta_step)
        scores = scores + value[leaf]
        values.append(value)
    return start, values


@pytest.mark.slow_after(2)  # many fits and plans
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("squared", {}),
        ("squared", {"initial_score": "zero", "lambda_rule": "floor", "pooling": 0.0, "reg_lambda": 20.0}),
        ("squared", {"initial_score": "laplace", "clip": 0.1, "pooling": 0.5}),
        ("squared", {"leaf_noise": "static", "max_delta_step": 0.05}),
        ("squared", {"adjacency": "replace-one", "initial_score": "public_count", "expected_rows": 200}),
        ("logistic", {}),
        ("logistic", {"leaf_statistic": "moments", "initial_score": "moments", "lambda_rule": "floor"}),
        ("logistic", {"curvature_scale": 3.33, "clip": 1.0, "pooling": 0.0, "initial_score": "zero"}),
        ("logistic", {"leaf_noise": "static"}),
    ],
)
def test_without_noise_the_leaves_are_those_of_plain_numpy(loss, options):
    """At an absurd epsilon what is left is the algorithm; the trees are the model's own, which are public."""
    model, X, y = fitted(loss, n=200, epsilon=ALMOST_NO_NOISE, n_estimators=4, **({"learning_rate": 0.5} | options))
    plan, trees = model.plan_, model.ensemble_.trees
    noise = plan.leaf_mechanism
    # What follows would hold for any leaves if the noise were large.
    assert max(getattr(noise, "stddevs", None) or (noise.stddev,)) < 1e-4
    cells = encode_features(X, model.schema_, bins=plan.max_bins)
    targets = y / 5.0 - 1.0 if loss == "squared" else np.where(y > 5, 1.0, -1.0)
    start, values = boosted_by_hand(plan, [tree.structure for tree in trees], cells, targets)
    assert model.ensemble_.initial_score == pytest.approx(start, abs=1e-5)
    for tree, value in zip(trees, values, strict=True):
        # 200 truncations of 2**-20, and noise of about as much, over a denominator of at least 3.
        np.testing.assert_allclose(tree.values, value, rtol=0, atol=2e-4)
    assert max(np.abs(tree.values).max() for tree in trees) > 0.01


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_predictions_are_the_sum_of_the_exported_arrays(loss):
    model, X, _ = fitted(loss, initial_score="moments", n_estimators=5)
    arrays = model.ensemble_.to_arrays()
    scores = np.full(len(X), float(arrays["initial_score"]))
    for column, row in enumerate(encode_features(X, model.schema_, bins=model.plan_.max_bins).T):
        for feature, split, equals, values in zip(
            arrays["feature"], arrays["split"], arrays["equals"], arrays["values"], strict=True
        ):
            node = 0
            while node < len(feature):
                cell = row[feature[node]]
                left = cell == split[node] if equals[node] else cell < split[node]
                node = 2 * node + (1 if left else 2)
            scores[column] += values[node - len(feature)]
    if loss == "squared":
        expected = (np.clip(scores, -1, 1) + 1) * 5.0
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-14)
    else:
        np.testing.assert_array_equal(model.decision_function(X), scores)
        np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


@pytest.mark.parametrize("clip", [0.2, 0.5, 0.7, 1.0])
def test_a_classifiers_probabilities_are_probabilities(clip):
    model, X, _ = fitted(
        "logistic", clip=clip, epsilon=0.01, n_estimators=8, learning_rate=1.0, reg_lambda=0.01, random_state=1
    )
    proba = model.predict_proba(X)
    assert proba.shape == (60, 2)
    assert ((proba >= 0) & (proba <= 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(proba[order, 1]) >= -1e-12).all()
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    # The likelier class by probability is the class by score.
    favoured = np.where(proba[:, 1] > proba[:, 0], "yes", "no")
    np.testing.assert_array_equal(model.predict(X), favoured)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(("clip", "share"), [(0.5, 0.7), (0.5, 0.1), (0.8, 0.3), (1.0, 0.9), (1.0, 0.6)])
def test_probabilities_undo_the_clip(clip, share):
    """Rows that cannot be told apart, without noise: the fit comes to rest where predict_proba says the true share."""
    n = 1_000
    X = np.array([[0.5, "red", 50.0]] * n, dtype=object)
    y = np.where(np.arange(n) < share * n, "yes", "no")
    model = SGBDTClassifier(
        epsilon=ALMOST_NO_NOISE, delta=1e-6, schema=CLASSIFICATION, n_estimators=300, max_depth=0, learning_rate=1.0,
        reg_lambda=1.0, leaf_statistic="moments", clip=clip, initial_score="zero", max_delta_step=10.0,
    )  # fmt: skip
    assert model.fit(X, y).predict_proba(X[:1])[0, 1] == pytest.approx(share, abs=0.002)


def test_a_regressor_stays_in_the_declared_range():
    model, X, _ = fitted("squared", epsilon=0.01, n_estimators=8, learning_rate=1.0, reg_lambda=0.01, random_state=1)
    predicted = model.predict(X)
    assert predicted.min() >= 0.0
    assert predicted.max() <= 10.0
    assert predicted.min() < 0.1 or predicted.max() > 9.9, "noise of this size reaches an end of the range"


def test_one_row_and_a_constant_column_fit():
    X, y = rows(1)
    assert np.isfinite(SGBDTRegressor(schema=REGRESSION, n_estimators=2).fit(X, y).predict(X)).all()
    X, y = rows(20)
    X[:, 0], X[:, 1], X[:, 2] = 0.5, "red", np.nan
    classifier = SGBDTClassifier(schema=CLASSIFICATION, n_estimators=2).fit(X, labels("logistic", y))
    assert np.isfinite(classifier.predict_proba(X)).all()


def test_a_tree_of_depth_zero_is_one_leaf():
    model, X, _ = fitted("squared", max_depth=0)
    assert [tree.values.shape for tree in model.ensemble_.trees] == [(1,), (1,)]
    assert len(set(model.predict(X).tolist())) == 1


def test_a_category_that_was_not_declared_is_other_in_fit_and_predict():
    model, X, _ = fitted("squared", epsilon=ALMOST_NO_NOISE, n_estimators=30, max_depth=3)
    unseen, other = X.copy(), X.copy()
    unseen[:, 1], other[:, 1] = "never seen", "green"
    np.testing.assert_array_equal(model.predict(unseen), model.predict(other))


PLAN = SGBDTRegressor(schema=REGRESSION, n_estimators=3).make_plan(REGRESSION)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_estimators": 0}, "n_estimators=0"), ({"max_depth": -1}, "max_depth=-1"),
        ({"max_depth": 21}, "max_depth=21 .* at most 20"),
        ({"max_bins": 1}, "max_bins=1"), ({"max_bins": 60_001}, "max_bins=60001"),
        ({"features_per_tree": 0}, "features_per_tree=0"),
        ({"numeric_weight": 0.0}, "numeric_weight=0"), ({"subsample": 0.0}, "subsample=0"),
        ({"subsample": 1.5}, r"subsample=1\.5"), ({"subsample": math.nan}, "subsample=nan"),
        ({"noise_multiplier": 0.0}, "noise_multiplier=0"), ({"clip": -1.0}, "clip=-1"),
        ({"count_share": 1.0}, "count_share=1"), ({"learning_rate": math.inf}, "learning_rate=inf"),
        ({"reg_lambda": 0.0}, "reg_lambda=0"), ({"pooling": 1.5}, "pooling=1.5"),
        ({"score_noise": 0.0}, "score_noise=0"),
        ({"max_delta_step": 0.0}, "max_delta_step=0"), ({"initial_share": 0.0}, "initial_share=0"),
        ({"initial_multiplier": 0.0}, "initial_multiplier=0"),
        ({"leaf_statistic": "curvature"}, "needs loss='logistic'"),
        ({"leaf_noise": "static", "reg_lambda": None}, "give reg_lambda as a number"),
    ],
)  # fmt: skip
def test_a_plan_outside_its_bounds_is_refused(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        dataclasses.replace(PLAN, **changes)


def test_a_public_count_is_declared_and_needs_replace_one():
    with pytest.raises(AdjacencyMismatch, match="number of rows is private under add-remove"):
        dataclasses.replace(PLAN, initial_score="public_count", expected_rows=10)
    with pytest.raises(InvalidParameter, match="expected_rows"):
        dataclasses.replace(PLAN, initial_score="public_count", adjacency=Adjacency.REPLACE_ONE)


def test_what_has_no_price_makes_no_plan():
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        fitted("squared", adjacency="replace-one", subsample=0.5)
    pure = Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(CalibrationFailed):
        PLAN.calibrated(pure)
    with pytest.raises(AdjacencyMismatch):
        PLAN.calibrated(Budget(epsilon=1.0, delta=1e-6, adjacency=Adjacency.ZERO_OUT))


@pytest.mark.parametrize("initial", ["zero", "moments", "laplace"])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_less_noise_than_the_plan_says_is_refused(initial, rate):
    """The loop cannot be run with a plan that was not paid for: not with less noise, not for one tree more."""
    plan = dataclasses.replace(PLAN, initial_score=initial, subsample=rate, initial_multiplier=5.0)
    X, y = rows(20)
    for cheaper in (
        dataclasses.replace(plan, noise_multiplier=plan.noise_multiplier * (1 - 1e-12)),
        dataclasses.replace(plan, subsample=min(1.0, rate * 1.5), noise_multiplier=plan.noise_multiplier * 0.9),
        dataclasses.replace(plan, n_estimators=plan.n_estimators + 1),
    ):
        ledger = Ledger(Budget(epsilon=1e6, delta=1e-3, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
        grant = ledger.grant(plan.event, purpose="test")
        table = Table.from_data(X, y, REGRESSION, loss="squared", bins=plan.max_bins)
        with pytest.raises(DrawRefused):
            train(cheaper, Curator(table, grant, SeededRandom(0)), np.random.default_rng(0))


class Recorder:
    """An aggregator that writes down what is released, with its event."""

    def __init__(self, curator):
        self.curator, self.schema, self.released = curator, curator.schema, []

    def open(self, event, *, purpose):
        self.round, self.event = self.curator.open(event, purpose=purpose), event
        return self

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.round.__exit__(*what)

    def release(self, query, mechanism, *, purpose):
        release = self.round.release(query, mechanism, purpose=purpose)
        self.released.append((self.event, release.real))
        return release


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(
    ("loss", "options", "one_row"),
    [
        # What one row moves in (weight, gradient), under the adjacency; the norm of that over the noise seen is mu.
        ("squared", {"leaf_statistic": "moments"}, [(1.0, 0.25)]),
        ("squared", {"leaf_noise": "static", "reg_lambda": 4.0}, [(0.25 / 5.0,)]),
        ("squared", {"subsample": 0.4}, [(1.0, 0.25)]),
        ("squared", {"adjacency": "replace-one"}, [(0.0, 0.5), (math.sqrt(2), math.sqrt(2) * 0.25)]),
        ("logistic", {"curvature_scale": 3.33, "clip": 1.0}, [(0.0, 1.0), (3.33 * 0.2361, 0.618)]),
        ("logistic", {"curvature_scale": 0.5, "clip": 0.5}, [(0.125, 0.5)]),
        ("logistic", {"adjacency": "replace-one", "curvature_scale": 0.5, "clip": 0.5}, [(0.25, 1.0)]),
    ],
)
def test_the_noise_that_is_seen_is_the_noise_that_is_priced(loss, options, one_row):
    """From released numbers alone: their spread, and what a row can move, give the multiplier on the ledger."""
    kind, schema = KINDS[loss]
    chosen = {"n_estimators": 40, "max_depth": 6, "clip": 0.25, "initial_score": "zero", "epsilon": 0.5} | options
    plan = kind(delta=1e-6, schema=schema, **chosen).make_plan(schema)
    X, y = rows(1)
    table = Table.from_data(X, labels(loss, y), schema, loss=loss, bins=plan.max_bins)
    ledger = Ledger(Budget(epsilon=0.5, delta=1e-6, adjacency=plan.adjacency), unit=PrivacyUnit.ROW)
    recorder = Recorder(Curator(table, ledger.grant(plan.event, purpose="test"), SeededRandom(9)))
    train(plan, recorder, np.random.default_rng(0))
    # 40 trees of 64 leaves; the one row is lost in their noise. Relative standard error of a spread: 1.4 %.
    seen = np.concatenate([values for _, values in recorder.released]).std(axis=0)
    mu = max(math.sqrt(sum((move / s) ** 2 for move, s in zip(moves, seen, strict=True))) for moves in one_row)
    event = recorder.released[0][0]
    event = event.event if isinstance(event, lw.PoissonSampled) else event
    assert mu == pytest.approx(1.0 / event.noise_multiplier, rel=0.06)
