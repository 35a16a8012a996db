"""S-GBDT under the individual filter: its price is the budget, and each row takes part as often as its limit allows."""

import dataclasses
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger.state import DrawEntry
from ledgerwood.curator import Curator, Table
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.parts.splits import structure_generator
from ledgerwood.trainers.sgbdt.training import train
from ledgerwood.verification import verify_ledger

DELTA = 1e-6
HUGE = 1e14
REGRESSION = lw.Schema.uniform(0, 1, n_features=3, target=lw.Numeric("y", 0, 10))
CLASSIFICATION = lw.Schema.uniform(0, 1, n_features=3, target=lw.Categorical("y", (0, 1)))
KINDS = {"squared": (SGBDTRegressor, REGRESSION), "logistic": (SGBDTClassifier, CLASSIFICATION)}
GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(0, 1, (300, 3))
Y = X[:, 0] * 8 + GENERATOR.uniform(0, 2, 300)
SMALL = {"n_estimators": 3, "extra_trees": 4, "max_depth": 2, "max_bins": 8, "reg_lambda": 3.0}


def labels(loss):
    return Y if loss == "squared" else (Y > 5).astype(int)


def model_of(loss, *, epsilon=1.0, **options):
    kind, schema = KINDS[loss]
    return kind(epsilon=epsilon, delta=DELTA, schema=schema, **(SMALL | options))


def plan_of(loss, **options):
    return model_of(loss, **options).make_plan(KINDS[loss][1])


class Watched:
    """An aggregator that notes, for every release, which rows were charged. Looks where only a test may."""

    def __init__(self, curator):
        self.curator, self.schema, self.rounds = curator, curator.schema, []

    def open(self, event, *, purpose):
        self.round = self.curator.open(event, purpose=purpose)
        return self

    def release(self, query, mechanism, *, purpose):
        if not isinstance(self.round, FilteredRounds):
            return self.round.release(query, mechanism, purpose=purpose)
        before = self.round._left.copy()
        release = self.round.release(query, mechanism, purpose=purpose)
        self.rounds.append(self.round._left < before)
        return release

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.round.__exit__(*error)


def trained(plan, loss, X=X, y=None, *, seed=7, watched=False):
    """The ensemble, and what was charged by round, shape (rounds, n_rows)."""
    table = Table.from_data(X, labels(loss) if y is None else y, KINDS[loss][1], loss=loss, bins=plan.max_bins)
    budget = Budget(epsilon=HUGE, delta=0.5, adjacency=plan.adjacency)
    grant = Ledger(budget, unit=PrivacyUnit.ROW).grant(plan.event, purpose="a test", delta=DELTA)
    source = SeededRandom(seed)
    curator = Curator(table, grant, source)
    aggregator = Watched(curator) if watched else curator
    ensemble = train(plan, aggregator, structure_generator(source))
    return ensemble, np.array(aggregator.rounds) if watched else None


@pytest.mark.slow_after(2)  # re-adds a ledger of each option
@pytest.mark.parametrize("initial", ["zero", "moments", "laplace"])
@pytest.mark.parametrize(
    ("loss", "rate", "kind"),
    [
        ("squared", 1.0, "gdp"), ("squared", 0.3, "renyi"), ("squared", 1.0, "renyi"),
        ("logistic", 1.0, "gdp"), ("logistic", 0.1, "renyi"),
    ],
)  # fmt: skip
def test_the_price_is_the_budget_and_a_stranger_agrees(loss, rate, kind, initial):
    model = model_of(loss, subsample=rate, initial_score=initial)
    model.fit(X, labels(loss))
    plan = model.plan_
    assert (plan.filter, plan.n_estimators, plan.extra_trees, plan.trees) == (
        kind if rate < 1 else "gdp",
        3,
        4,
        7,
    )
    if kind == "renyi" and rate == 1.0:
        model = model_of(loss, filter="renyi", initial_score=initial).fit(X, labels(loss))
        plan = model.plan_
    priced = lw.price(plan.event).epsilon(DELTA)
    assert 0.9999 < priced <= 1.0
    assert model.privacy_.epsilon == priced
    assert model.privacy_.certified
    assert len(model.ensemble_.trees) == 7
    report = verify_ledger(model.ledger_, head=model.privacy_.ledger_head)
    assert report.epsilon_readded == pytest.approx(priced, rel=1e-6)
    # One draw holds all the trees.
    draws = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert len(draws) == len(plan.initial.events) + 1


def test_the_filter_by_gaussian_privacy_costs_no_noise():
    plain = plan_of("squared", extra_trees=None)
    filtered = plan_of("squared")
    assert plain.filter == "none"
    assert 1.0 <= filtered.noise_multiplier / plain.noise_multiplier < 1.0 + 2.0**-30
    # Extra trees are free.
    assert plan_of("squared", extra_trees=1000).noise_multiplier == filtered.noise_multiplier


@pytest.mark.slow  # many fits and plans
def test_the_order_is_the_best_one_for_the_budget():
    """At neighbouring orders the same budget asks for more noise."""
    plan = plan_of("squared", subsample=0.3, initial_score="laplace")
    budget = Budget(epsilon=1.0, delta=DELTA, adjacency=Adjacency.ADD_REMOVE)
    for factor in (0.8, 1.25):
        other = dataclasses.replace(plan, filter_order=1.0 + (plan.filter_order - 1.0) * factor)
        assert other.calibrated(budget).noise_multiplier > plan.noise_multiplier * 1.0001
    assert plan.calibrated(budget) == plan


@pytest.mark.slow_after(4)  # many fits and plans
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("kind", "rate"), [("gdp", 1.0), ("renyi", 1.0), ("renyi", 0.5)])
def test_where_no_row_is_cut_the_releases_are_those_without_a_filter(loss, kind, rate):
    """Bit for bit: the same random words in the same order, and nothing taken from any row."""
    plain = plan_of(loss, extra_trees=None, subsample=rate, n_estimators=6)
    order = 8.0 if kind == "renyi" else None
    filtered = dataclasses.replace(plain, filter=kind, filter_order=order)
    expected, _ = trained(plain, loss)
    found, charged = trained(filtered, loss, watched=True)
    assert charged.all()
    assert found.initial_score == expected.initial_score
    for tree, other in zip(found.trees, expected.trees, strict=True):
        np.testing.assert_array_equal(tree.structure.feature, other.structure.feature)
        np.testing.assert_array_equal(tree.values, other.values)


@pytest.mark.slow_after(3)  # fits of many rounds
@pytest.mark.parametrize("rounds", [1, 3, 50])
@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("squared", {}),
        ("squared", {"subsample": 0.3, "filter": "renyi"}),
        ("logistic", {"leaf_statistic": "moments", "clip": 0.25}),
        ("logistic", {"leaf_statistic": "moments", "clip": 0.25, "subsample": 0.05, "filter": "renyi"}),
    ],
)
def test_a_row_at_the_clip_takes_part_in_exactly_rounds_rounds(loss, options, rounds):
    """Rows at the clip run out together; the trees go on, over nobody, to their public number."""
    plan = plan_of(loss, n_estimators=rounds, extra_trees=3, learning_rate=1e-9, initial_score="zero", **options)
    y = np.where(np.arange(300) % 2 == 0, 0.0, 10.0) if loss == "squared" else np.arange(300) % 2
    ensemble, charged = trained(plan, loss, y=y, watched=True)
    np.testing.assert_array_equal(charged.all(axis=1), np.arange(rounds + 3) < rounds)
    np.testing.assert_array_equal(charged.any(axis=1), np.arange(rounds + 3) < rounds)
    assert len(ensemble.trees) == rounds + 3


def test_a_row_of_the_largest_curvature_takes_part_in_exactly_rounds_rounds():
    """|(g, c h)| is largest at g = 1/2 for this clip, where every row begins."""
    plan = plan_of("logistic", n_estimators=20, extra_trees=5, learning_rate=1e-9, clip=0.5, curvature_scale=0.3)
    _, charged = trained(plan, "logistic", watched=True)
    np.testing.assert_array_equal(charged.sum(axis=0), np.full(300, 20))


def leaf_of(column, structure):
    node = 0
    for _ in range(structure.depth):
        cell, split = column[structure.feature[node]], structure.split[node]
        node = 2 * node + (1 if (cell == split if structure.equals[node] else cell < split) else 2)
    return node - (structure.n_leaves - 1)


def test_without_noise_the_leaves_are_those_of_algorithm_8_in_plain_numpy():
    """At an absurd epsilon what is left is the algorithm: a row is out where its squares would exceed the limit."""
    rounds, extra, clip, share = 5, 15, 0.3, 0.02
    plan = plan_of(
        "squared", epsilon=1e12, n_estimators=rounds, extra_trees=extra, clip=clip, count_share=share,
        initial_score="zero", learning_rate=0.5,
    )  # fmt: skip
    ensemble, charged = trained(plan, "squared", watched=True)
    cells, targets = encode_features(X, REGRESSION, bins=plan.max_bins), Y / 5.0 - 1.0
    scores, spent = np.zeros(300), np.zeros(300)
    for tree, taken in zip(ensemble.trees, charged, strict=True):
        leaf = np.array([leaf_of(column, tree.structure) for column in cells.T])
        gradient = np.clip(scores - targets, -clip, clip)
        cost = share + (1.0 - share) * (gradient / clip) ** 2
        active = spent + cost <= rounds * (1.0 + 1e-9)
        # Nobody is so near to the limit that the last digits decide, but for rows that were at the clip all along.
        np.testing.assert_array_equal(taken, active)
        spent += np.where(active, cost, 0.0)
        G = np.bincount(leaf, np.where(active, gradient, 0.0), minlength=4)
        H = np.bincount(leaf, active.astype(float), minlength=4)
        H = (1.0 - plan.pooling) * H + plan.pooling * H.mean()
        np.testing.assert_allclose(tree.values, -0.5 * G / (H + 3.0), rtol=0, atol=2e-4)
        scores += tree.values[leaf]
    shares = charged.mean(axis=1)
    assert shares[0] == 1.0
    assert 0.0 < shares[-1] < 1.0, "some rows ran out, and some did not"
    assert spent.max() <= rounds * (1.0 + 1e-9)


def test_gradients_beyond_the_clip_may_be_dropped():
    """With every gradient beyond the clip nothing is left to learn from; with the clip there is."""
    y = np.full(300, 10.0)
    options = {"epsilon": 1e12, "initial_score": "zero", "extra_trees": None, "learning_rate": 0.1}
    kept, _ = trained(plan_of("squared", **options), "squared", y=y)
    dropped, _ = trained(plan_of("squared", large_gradients="drop", **options), "squared", y=y)
    assert min(tree.values.min() for tree in kept.trees) > 0.001
    assert max(np.abs(tree.values).max() for tree in dropped.trees) < 1e-4


def test_dropped_rows_are_not_charged():
    plan = plan_of("squared", large_gradients="drop", initial_score="zero", learning_rate=1e-9, clip=0.5)
    _, charged = trained(plan, "squared", watched=True)
    np.testing.assert_array_equal(charged[0], np.abs(Y / 5.0 - 1.0) <= 0.5)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(("loss", "rate"), [("squared", 1.0), ("squared", 0.2), ("logistic", 1.0)])
def test_a_filtered_model_is_saved_and_read_back(loss, rate, tmp_path):
    model = model_of(loss, subsample=rate, large_gradients="drop").fit(X, labels(loss))
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert (loaded.plan_, loaded.privacy_, loaded.ledger_) == (model.plan_, model.privacy_, model.ledger_)
    assert loaded.get_params()["extra_trees"] == 4
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_model_saved_before_the_filter_existed_is_read():
    """Its plan has none of the filter's fields."""
    plan = plan_of("squared", extra_trees=None)
    new = {"filter", "extra_trees", "filter_order", "large_gradients"}
    record = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan) if field.name not in new}
    assert SGBDTRegressor._read_plan({**record, "adjacency": "add-remove"}) == plan


def test_auto_takes_the_filter_that_fits():
    assert plan_of("squared", extra_trees=None).filter == "none"
    assert plan_of("squared", extra_trees=0).filter == "none"
    assert plan_of("squared", extra_trees=1).filter == "gdp"
    assert plan_of("squared", extra_trees=1, subsample=0.5).filter == "renyi"
    assert plan_of("squared", extra_trees=None, filter="gdp").filter == "gdp"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"filter": "laplace"}, InvalidParameter, "filter='laplace' must be one of 'none', 'gdp', 'renyi'"),
        ({"filter": "none"}, InvalidParameter, "extra_trees=4 need a filter"),
        ({"extra_trees": -1}, InvalidParameter, "extra_trees=-1"),
        ({"extra_trees": 1.5}, InvalidParameter, "extra_trees=1.5"),
        ({"adjacency": "replace-one"}, AdjacencyMismatch, "filter='gdp' needs adjacency add-remove or zero-out"),
        ({"leaf_noise": "static"}, InvalidParameter, "filter='gdp' needs leaf_noise='dynamic'"),
        ({"filter": "gdp", "subsample": 0.5}, InvalidParameter, "set filter='renyi'"),
        ({"large_gradients": "keep"}, InvalidParameter, "large_gradients='keep' must be one of 'clip', 'drop'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        plan_of("squared", **options)


def test_an_order_is_for_the_renyi_filter_and_above_one():
    plan = plan_of("squared")
    with pytest.raises(InvalidParameter, match="belongs to filter='renyi'"):
        dataclasses.replace(plan, filter_order=3.0)
    for order in (1.0, math.nan, math.inf):
        with pytest.raises(InvalidParameter, match="filter_order="):
            dataclasses.replace(plan, filter="renyi", filter_order=order)
    with pytest.raises(InvalidParameter, match="filter_order=None: .* fixed by `calibrated`"):
        dataclasses.replace(plan, filter="renyi").event


def test_the_known_noise_counts_every_tree():
    """lambda = sqrt(T) eta s / A over the trees that there are, extra ones included."""
    few, many = (plan_of("squared", reg_lambda="noise", score_noise=0.5, extra_trees=n) for n in (1, 13))
    assert many.leaf_lambda / few.leaf_lambda == pytest.approx(math.sqrt(16 / 4), rel=1e-12)
