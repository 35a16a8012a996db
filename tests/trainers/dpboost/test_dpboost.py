"""DPBoost: every option's plan costs what the ledger charged, draws all of it, and does what plain numpy does."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.curator import Curator, Table, encode_features
from ledgerwood.ensemble import SplitTests
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import DPBoostClassifier, DPBoostPlan, DPBoostRegressor
from ledgerwood.trainers.dpboost.training import train
from ledgerwood.verification import verify_ledger

FEATURES = (
    lw.Numeric("size", 0.0, 1.0),
    lw.Categorical("colour", ("red", "blue")),
    lw.Numeric("age", 0, 100, missing=True),
)
REGRESSION = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0.0, 10.0))
CLASSIFICATION = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no", "yes")))
ALMOST_NO_NOISE = 1e11
A = Adjacency.ADD_REMOVE


def rows(n, seed=0):
    generator = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(["red", "blue", "green"], n)
    X[:, 2] = np.where(generator.random(n) < 0.2, np.nan, generator.uniform(-5, 105, n))
    signal = X[:, 0].astype(float) * 6 + np.where(X[:, 1] == "red", 3.0, 0.0)
    return X, signal + generator.uniform(0, 1, n)


def regressor(**options):
    return DPBoostRegressor(**({"schema": REGRESSION, "n_estimators": 5, "max_depth": 2, "max_bins": 8} | options))


def fitted(*, n=60, classes=False, **options):
    X, y = rows(n)
    if not classes:
        return regressor(**options).fit(X, y)
    model = DPBoostClassifier(
        **({"schema": CLASSIFICATION, "n_estimators": 5, "max_depth": 2, "max_bins": 8} | options)
    )
    return model.fit(X, np.where(y > 5, "yes", "no"))


OPTIONS = [
    {"preset": "paper"},
    {"preset": "paper", "trees_per_ensemble": 2, "candidates": "gridless", "max_bins": 5000},
    {"preset": "paper", "trees_per_ensemble": 2, "adjacency": "zero-out", "large_gradients": "clip"},
    {"preset": "paper", "adjacency": "replace-one", "initial_score": "public_count", "expected_rows": 60},
    {"preset": "enhanced", "trees_per_ensemble": 3},
    {"preset": "para", "adjacency": "replace-one"},
    {"preset": "seq", "max_depth": 0},
    {"preset": "default"},
    {"preset": "default", "trees_per_ensemble": 4, "adjacency": "replace-one"},
    {"preset": "default", "classes": True},
    {"preset": "default", "classes": True, "loss": "logistic", "initial_score": "laplace"},
    {"preset": "paper", "classes": True, "trees_per_ensemble": 2},
    {"preset": "paper", "classes": True, "loss": "logistic"},
]


@pytest.mark.slow  # calibrates a plan of each option
@pytest.mark.parametrize("options", OPTIONS)
def test_a_pure_plan_costs_the_whole_budget_and_draws_all_that_was_granted(options):
    model = fitted(epsilon=0.7, **options)
    plan, privacy = model.plan_, model.privacy_
    priced = lw.price(plan.event).epsilon(0.0)
    assert 0.7 * (1 - 1e-9) < priced <= 0.7
    assert plan.event.adjacency is Adjacency(options.get("adjacency", "add-remove"))
    grants = [entry for entry in model.ledger_.entries if isinstance(entry, GrantEntry)]
    draws = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert [grant.event for grant in grants] == [plan.event]
    assert grants[0].charge.epsilon == priced == privacy.epsilon
    assert len(draws) == sum(count for _, count in plan.event.draws())
    assert len(draws) == len(plan.initial.events) + math.ceil(plan.n_estimators / plan.trees_per_ensemble)
    assert (privacy.certified, privacy.randomness, privacy.delta) == (True, "secure", 0.0)
    report = verify_ledger(model.ledger_, head=privacy.ledger_head)
    assert report.epsilon_readded == pytest.approx(0.7, rel=1e-9)
    assert [tree.structure.depth for tree in model.ensemble_.trees] == [plan.max_depth] * 5
    assert [tree.values.shape for tree in model.ensemble_.trees] == [(2**plan.max_depth,)] * 5


@pytest.mark.slow  # composes the losses of greedy trees
@pytest.mark.parametrize("initial", ["zero", "moments"])
def test_with_a_delta_the_same_plan_is_priced_by_composition(initial):
    model = fitted(epsilon=1.0, delta=1e-6, n_estimators=12, initial_score=initial)
    plan = model.plan_
    assert 0.999 < lw.price(plan.event).epsilon(1e-6) == model.privacy_.epsilon <= 1.0
    # What the delta buys, and that the plan without it is the pure one.
    pure = plan.without_delta(Budget(epsilon=1.0, delta=1e-6, adjacency=A))
    assert lw.price(pure.event).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    assert plan.tree_epsilon > 1.2 * pure.tree_epsilon
    same = {"tree_epsilon": 1.0, "initial_multiplier": 1.0, "initial_score": "zero"}
    assert dataclasses.replace(pure, **same) == dataclasses.replace(plan, **same)


@pytest.mark.slow_after(4)  # many fits and plans
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("depth", [0, 1, 6])
def test_the_event_is_that_of_the_papers_theorems(adjacency, depth):
    """Half for the leaves, the rest by level; trees of an ensemble side by side, ensembles one after another."""
    plan = regressor(preset="paper", adjacency=adjacency, max_depth=depth, trees_per_ensemble=2, epsilon=3.0).make_plan(
        REGRESSION
    )
    assert plan.ensembles == ((2, 2), (1, 1))
    assert plan.tree_epsilon == pytest.approx(1.0, rel=1e-9)  # three ensembles share 3 nats
    tree = plan.tree_event
    levels = [lw.Repeated(plan.split_event, count=depth)] if depth else []
    assert tree.events == (*levels, plan.leaf_event)
    if depth:
        assert plan.split_event.pure_epsilon() == pytest.approx(0.5 / depth, rel=1e-9)
        # exp(rate x gain) with the range 4 of a unit clip, 8 where a row is replaced.
        width = 8.0 if adjacency is Adjacency.REPLACE_ONE else 4.0
        assert plan.split_mechanism.rate == pytest.approx(0.5 / depth / width, rel=1e-9)
    assert plan.leaf_event.pure_epsilon() == pytest.approx(0.5 if depth else 1.0, rel=1e-9)
    two, one = (lw.Parallel((tree,) * k, probabilities=plan.shares(k)) for k in (2, 1))
    assert plan.event == lw.Composed((lw.Repeated(two, count=2), lw.Repeated(one, count=1)))


@pytest.mark.parametrize("damping", [0.1, 3.0])
def test_the_noise_of_leaves_follows_their_place_in_the_ensemble(damping):
    """Corollary 2, with the place where Algorithm 2 has the number over all: min(g/(1 + lambda), 2 g (1 - eta)^t)."""
    eta, clip = 0.3, 0.5
    plan = regressor(
        preset="paper", learning_rate=eta, clip=clip, reg_lambda=damping, n_estimators=12, epsilon=1.0
    ).make_plan(REGRESSION)
    step = 2.0**-20
    for place in range(12):
        (scale,) = plan.leaf_mechanism(place).scales
        moved = min(clip / (1 + damping) + step, 2 * clip * (1 - eta) ** place)
        assert scale == pytest.approx(moved / 0.5, rel=2e-3 if place > 8 else 1e-4)
        # Whatever the noise, the cost is one.
        drawn = plan.leaf_mechanism(place).event(plan.leaf(place).sensitivity(plan.adjacency), plan.adjacency)
        assert drawn == plan.leaf_event
    assert dataclasses.replace(plan, geometric_clipping=False).leaf_clip(7) is None


def test_leaf_clips_end_at_one_step():
    plan = regressor(preset="paper", learning_rate=1.0, n_estimators=3, reg_lambda=0.1).make_plan(REGRESSION)
    assert [plan.leaf_clip(place) for place in range(3)] == [1.0, 2.0**-20, 2.0**-20]
    assert plan.shares(3) == (1.0, 0.0, 0.0)


@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_an_ensembles_shares_are_the_papers(trees, eta):
    plan = dataclasses.replace(PLAN, learning_rate=eta)
    eta = Fraction(eta)
    whole = 1 - (1 - eta) ** trees
    for place, share in enumerate(plan.shares(trees)):
        assert share == pytest.approx(float(eta * (1 - eta) ** place / whole), rel=1e-12)
    halves = dataclasses.replace(plan, assignment="halving").shares(trees)
    assert halves == ((1.0,) if trees == 1 else tuple(2.0**-k for k in range(1, trees + 1)))


PLAN = regressor(preset="paper").make_plan(REGRESSION)


@pytest.mark.parametrize("assignment", ["geometric", "halving"])
def test_every_row_is_in_one_tree_of_an_ensemble(assignment, monkeypatch):
    """Numbers of rows, almost without noise: each ensemble parts all rows anew, in the shares of the plan."""
    counts = []
    monkeypatch.setattr(
        DPBoostPlan, "leaf_values", lambda plan, released: counts.append(released[0, 0]) or np.zeros(len(released))
    )
    n = 4_000
    model = fitted(
        n=n, n_estimators=7, trees_per_ensemble=3, max_depth=0, leaf_release="sums", large_gradients="clip",
        assignment=assignment, learning_rate=0.4, epsilon=ALMOST_NO_NOISE, preset="paper",
    )  # fmt: skip
    counts = np.array(counts)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    for ensemble in (counts[:3], counts[3:6], counts[6:]):
        shares = np.array(model.plan_.shares(len(ensemble)))
        assert ensemble.sum() == pytest.approx(n, abs=0.1) if shares.sum() == pytest.approx(1) else ensemble.sum() < n
        sigmas = np.sqrt(n * shares * (1 - shares)) + 1e-9
        assert (np.abs(ensemble - n * shares) <= 5 * sigmas + 1e-3).all()
    assert not np.array_equal(counts[:3], counts[3:6]), "the rows are dealt afresh"


class Watched:
    """An aggregator that keeps the rounds that it hands out."""

    def __init__(self, curator):
        self.curator, self.schema, self.open, self.rounds = curator, curator.schema, curator.open, []

    def open_groups(self, event, *, purpose):
        groups = self.curator.open_groups(event, purpose=purpose)
        self.rounds += [groups.round(k) for k in range(len(event.events))]
        return groups


@pytest.mark.parametrize("options", [{"preset": "paper", "trees_per_ensemble": 2}, {"preset": "default"}])
def test_a_tree_releases_all_that_its_group_holds(options):
    X, y = rows(50)
    plan = regressor(**options).make_plan(REGRESSION)
    ledger = Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW)
    table = Table.from_data(X, y, REGRESSION, loss="squared", bins=plan.max_bins)
    done = []
    watched = Watched(Curator(table, ledger.grant(plan.event, purpose="test"), SeededRandom(0)))
    train(plan, watched, lambda tree, of: done.append((tree, of)))
    assert len(watched.rounds) == 5
    assert [sum(round_._held.values()) for round_ in watched.rounds] == [0] * 5
    assert done == [(tree, 5) for tree in range(1, 6)]


def undecided(tests, allowed):
    """Which tests a path leaves open, from the cells of each feature that may reach the node."""
    return np.array([
        len({bool(c == s if e else c < s or c == b) for c in np.flatnonzero(allowed[f])}) == 2
        for f, s, e, b in zip(tests.feature, tests.split, tests.equals, tests.besides, strict=True)
    ])  # fmt: skip


def check_greedy(trees, cells, tests, targets, *, eta, damping, clip, drop):
    """Every test of every tree is one of the best by S^2/(n + lambda), every leaf minus a damped mean; from scratch."""
    left_of = np.array([
        (cells[f] == s) if e else (cells[f] < s) | (cells[f] == b)
        for f, s, e, b in zip(tests.feature, tests.split, tests.equals, tests.besides, strict=True)
    ])  # fmt: skip
    names = [*zip(tests.feature, tests.split, tests.equals, tests.besides, strict=True)]
    scores = np.zeros(len(targets))
    for tree in trees:
        made = tree.structure
        gradient = scores - targets
        part = np.abs(gradient) <= clip if drop else np.ones(len(targets), bool)
        gradient = np.clip(gradient, -clip, clip) * part
        reached = {0: (np.ones(len(targets), bool), np.ones((len(cells), cells.max() + 1), bool))}
        for node in range(made.n_leaves - 1):
            inside, allowed = reached[node]
            counted = inside & part
            S, n = left_of[:, counted] @ gradient[counted], left_of[:, counted].sum(axis=1)
            other, m = gradient[counted].sum() - S, counted.sum() - n
            gain = np.where(undecided(tests, allowed), S**2 / (n + damping) + other**2 / (m + damping), -np.inf)
            test = (made.feature[node], made.split[node], made.equals[node], made.besides[node])
            if np.isfinite(gain.max()):
                assert gain[names.index(test)] >= gain.max() - 1e-3
            f, s, e, b = test
            cell = np.arange(allowed.shape[1])
            for child, left in ((2 * node + 1, True), (2 * node + 2, False)):
                narrowed = allowed.copy()
                narrowed[f] &= ((cell == s) if e else (cell < s) | (cell == b)) == left
                reached[child] = (inside & (left_of[names.index(test)] == left), narrowed)
        for leaf in range(made.n_leaves):
            inside, _ = reached[leaf + made.n_leaves - 1]
            counted = inside & part
            value = -eta * gradient[counted].sum() / (counted.sum() + damping)
            assert tree.values[leaf] == pytest.approx(value, abs=1e-4)
            scores[inside] += tree.values[leaf]
    return scores


def plain_rows(n, seed=4):
    generator = np.random.default_rng(seed)
    X = generator.uniform(0, 1, (n, 3))
    y = np.clip(6 * X[:, 0] + 3 * np.sin(5 * X[:, 1]) + generator.normal(0, 0.5, n), 0, 10)
    return X, y, lw.Schema.uniform(0, 1, n_features=3, target=lw.Numeric("y", 0, 10))


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(
    ("options", "drop", "clip"),
    [
        ({"preset": "np"}, False, 2.0),
        ({"preset": "np", "candidates": "gridless", "max_bins": 64}, False, 2.0),
        ({"preset": "np", "leaf_release": "sums"}, False, 2.0),
        ({"preset": "np", "large_gradients": "drop", "clip": 0.4}, True, 0.4),
        ({"preset": "seq", "clip": 0.4, "large_gradients": "clip"}, False, 0.4),
    ],
)
def test_without_noise_trees_are_the_greedy_ones(options, drop, clip):
    """At an absurd epsilon the best gain wins always, and what is left is plain boosting over all rows."""
    X, y, schema = plain_rows(300)
    model = DPBoostRegressor(
        epsilon=ALMOST_NO_NOISE, schema=schema, n_estimators=6, max_depth=3, learning_rate=0.3,
        reg_lambda=1.0, **({"max_bins": 64} | options),
    ).fit(X, y)  # fmt: skip
    cells = encode_features(X, schema, bins=64).astype(int)
    scores = check_greedy(
        model.ensemble_.trees, cells, SplitTests.every(schema.cells(64)), y / 5.0 - 1.0, eta=0.3, damping=1.0,
        clip=clip, drop=drop,
    )  # fmt: skip
    np.testing.assert_allclose(model.predict(X), np.clip(scores, -1, 1) * 5 + 5, rtol=0, atol=1e-9)
    assert np.std(scores) > 0.1


def test_filtered_rows_take_no_part():
    """One ensemble of one tree: rows beyond the clip might as well not be there, and clipped ones might not."""
    X, y, schema = plain_rows(200)
    within = np.abs(y / 5.0 - 1.0) <= 0.5
    options = {
        "epsilon": ALMOST_NO_NOISE,
        "schema": schema,
        "n_estimators": 1,
        "max_depth": 2,
        "max_bins": 16,
        "clip": 0.5,
    }

    def scores(kind, rows):
        model = DPBoostRegressor(preset="seq", large_gradients=kind, **options).fit(X[rows], y[rows])
        return model.ensemble_.scores(encode_features(X, schema, bins=16))

    everything = np.ones(200, bool)
    np.testing.assert_allclose(scores("drop", everything), scores("drop", within), atol=1e-4)
    assert np.abs(scores("clip", everything) - scores("clip", within)).max() > 0.01


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9])
@pytest.mark.parametrize(
    "options",
    [
        {"preset": "seq", "n_estimators": 50},
        {"preset": "enhanced", "n_estimators": 7, "trees_per_ensemble": 2},
        {"preset": "default", "max_depth": 0},
        {"preset": "paper", "adjacency": "replace-one"},
    ],
)
def test_a_budget_that_is_too_small_is_told_what_would_fit(options, epsilon):
    model = regressor(epsilon=epsilon, **options)
    ledger = Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency(model.adjacency)), unit=PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(CalibrationFailed, match=f"epsilon={epsilon!r} nats .*too small .*what would fit") as refusal:
        model.fit(*rows(20), ledger=ledger)
    assert ledger.entries == before
    said = dict(item.split("=") for item in str(refusal.value).split("what would fit: ")[1].split(" or "))
    enough = float(said["epsilon"])
    assert model.set_params(epsilon=enough).make_plan(REGRESSION).tree_epsilon > 0.0
    with pytest.raises(CalibrationFailed):  # and no more was asked for than is needed
        model.set_params(epsilon=0.9 * enough).make_plan(REGRESSION)
    if "n_estimators" in said:
        assert model.set_params(epsilon=epsilon, n_estimators=int(said["n_estimators"])).make_plan(REGRESSION)


def test_fewer_trees_are_offered_where_they_would_do():
    model = regressor(preset="seq", n_estimators=1000, epsilon=1e-3)
    with pytest.raises(CalibrationFailed, match=r"1000 trees of depth 2: .* or n_estimators=524$"):
        model.make_plan(REGRESSION)  # 2**-19 a tree


@pytest.mark.slow  # many fits and plans
def test_a_plan_too_small_for_a_delta_says_so_too():
    model = regressor(preset="seq", n_estimators=2000, epsilon=1e-5, delta=1e-9)
    with pytest.raises(CalibrationFailed, match=r"too small .* what would fit: epsilon=") as refusal:
        model.make_plan(REGRESSION)
    enough = float(str(refusal.value).split("fit: epsilon=")[1].split(" ")[0])
    assert model.set_params(epsilon=enough).make_plan(REGRESSION)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_estimators": 0}, "n_estimators=0"), ({"trees_per_ensemble": 0}, "trees_per_ensemble=0"),
        ({"max_depth": -1}, "max_depth=-1"),
        ({"max_depth": 21}, "max_depth=21 .* at most 20"), ({"max_bins": 1}, "max_bins=1"),
        ({"max_bins": 60_001}, "max_bins=60001"),
        ({"tree_epsilon": 0.0}, "tree_epsilon=0"), ({"leaf_share": 0.0}, "leaf_share=0"),
        ({"leaf_share": 1.0}, "leaf_share=1"), ({"initial_share": 1.0}, "initial_share=1"),
        ({"count_share": 0.0}, "count_share=0"), ({"score_noise": 0.0}, "score_noise=0"),
        ({"learning_rate": 1.1}, r"learning_rate=1\.1 must be in \(0, 1\]"), ({"learning_rate": 0.0}, "learning_rate"),
        ({"max_delta_step": 0.0}, "max_delta_step=0"), ({"clip": 0.0}, "clip=0"), ({"clip": 1e9}, "clip=1"),
        ({"reg_lambda": 0.0}, "reg_lambda=0"), ({"reg_lambda": math.nan}, "reg_lambda=nan"),
        ({"leaf_release": "sums"}, "geometric_clipping=True"),
        ({"leaf_regularization": "noise"}, "leaf_release='sums'"),
    ],
)  # fmt: skip
def test_a_plan_refuses_what_is_out_of_bounds(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        dataclasses.replace(PLAN, **changes)


def test_a_public_count_needs_replaced_rows():
    with pytest.raises(AdjacencyMismatch, match="private under add-remove"):
        dataclasses.replace(PLAN, initial_score="public_count", expected_rows=10)
