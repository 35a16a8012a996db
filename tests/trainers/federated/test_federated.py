"""The federated framework's plan: its events are Table 1, its price is the ledger's; what it sends; odd plans."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events import Composed, EllipticalGaussianEvent, GaussianEvent, Repeated
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.curator.rounds import CuratorRound
from ledgerwood.errors import CalibrationFailed, InvalidParameter, PrivacyError
from ledgerwood.trainers import FederatedGBDTClassifier, FederatedGBDTRegressor
from ledgerwood.trainers.federated.presets import preset_plan
from ledgerwood.verification import verify_ledger

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A)
M, T, D, S, K = 5, 6, 3, 2, 2
CLASSES = lw.Schema.uniform(0.0, 1.0, n_features=M, target=lw.Categorical("y", (0, 1)))
NUMBERS = lw.Schema.uniform(0.0, 1.0, n_features=M, target=lw.Numeric("y", 0.0, 1.0))


def plan(**changes):
    start = preset_plan("tr_newton", "logistic", BUDGET, None, (True,) * M)
    fixed = {"n_estimators": T, "max_depth": D, "refinements": S, "noise_multiplier": 7.0}
    return dataclasses.replace(start, **fixed | changes)


def multiplier(event):
    if isinstance(event, GaussianEvent):
        return event.noise_multiplier
    assert isinstance(event, EllipticalGaussianEvent)
    return 1.0 / math.sqrt(sum((d / s) ** 2 for d, s in zip(event.sensitivities, event.stddevs, strict=True)))


def queries_of(event, one):
    """How many queries of multiplier `one` the Gaussian parts of an event are worth: squares of multipliers add up."""
    match event:
        case Composed():
            return sum(queries_of(part, one) for part in event.events)
        case Repeated():
            return event.count * queries_of(event.event, one)
    return (one / multiplier(event)) ** 2


TABLE_1 = [
    # (changes, kappa_s, kappa_w, kappa_c, recalibration) by the paper's Table 1, and what is needed beyond it.
    ({"split_method": "histogram"}, T * M * D, 0, 0, 0),
    ({"split_method": "partially_random"}, T * M * D + T, 0, 0, 0),
    ({"split_method": "totally_random"}, 0, T, 0, 0),
    ({"update": "gradient"}, 0, T, 0, 0),
    ({"update": "averaging", "loss": "squared"}, 0, T, 0, 0),
    ({"candidates": "log"}, 0, T, 0, 0),
    ({"candidates": "iterative_hessian"}, 0, T, S * M, 0),
    ({"candidates": "iterative_hessian", "split_method": "histogram"}, T * M * D, 0, 0, 0),
    ({"features_per_tree": K, "split_method": "histogram"}, T * K * D, 0, 0, 0),
    ({"features_per_tree": K, "split_method": "partially_random"}, T * K * D + T, 0, 0, 0),
    ({"features_per_tree": 1, "split_method": "histogram"}, T, 0, 0, 0),
    ({"features_per_tree": K, "feature_cycle": "random", "split_method": "histogram"}, T * K * D, 0, 0, 0),
    # Each feature is refined s times: s trees a feature, as the published code has it, T at most.
    ({"features_per_tree": 1, "candidates": "iterative_hessian"}, 0, T, min(S * M, T), 0),
    ({"features_per_tree": K, "candidates": "iterative_hessian"}, 0, T, K * min(S * math.ceil(M / K), T), 0),
    (
        {"features_per_tree": K, "candidates": "iterative_hessian", "feature_cycle": "random"},
        0, T, K * min(S * math.ceil(M / K), T), 0,
    ),
    ({"trees_per_batch": 3}, 0, T, 0, 0),
    ({"trees_per_batch": T, "recalibrate": True}, 0, T, 0, 1),
    ({"classes": 4, "recalibrate": True, "candidates": "iterative_hessian"}, 0, 4 * T, 4 * S * M, 4),
    ({"max_depth": 0, "split_method": "histogram"}, 0, T, 0, 0),
    ({"max_depth": 0, "split_method": "partially_random"}, 0, T, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("adjacency", [A, lw.Adjacency.ZERO_OUT])
@pytest.mark.parametrize("row", TABLE_1, ids=lambda row: "-".join(map(str, row[0].values())))
def test_the_counts_of_table_1_are_what_the_events_cost(row, adjacency):
    changes, *expected = row
    made = plan(**changes, adjacency=adjacency)
    counts = made.query_counts
    assert [counts.splits, counts.weights, counts.candidates, counts.recalibration] == expected
    assert counts.total == sum(expected)
    assert queries_of(made.event, 7.0) == pytest.approx(counts.total, rel=1e-9)


@pytest.mark.parametrize("row", TABLE_1[:3], ids=lambda row: row[0]["split_method"])
def test_a_replaced_row_costs_at_most_four_queries_each(row):
    """Twice the shift, four times mu squared; two sums move where a row changes its leaf, which is less."""
    made = plan(**row[0], adjacency=lw.Adjacency.REPLACE_ONE)
    assert queries_of(made.event, 7.0) == pytest.approx(4 * made.query_counts.total, rel=1e-9)


def test_the_multiplier_of_a_budget_is_that_of_as_many_gaussian_queries():
    made = plan(candidates="iterative_hessian").calibrated(BUDGET)
    alone = lw.calibrate(
        lambda s: Repeated(GaussianEvent(noise_multiplier=s, adjacency=A), count=made.query_counts.total), BUDGET
    )
    assert made.noise_multiplier == pytest.approx(alone, rel=1e-6)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "tr_batched_ih_ebm"},
        {"preset": "feverless", "n_estimators": 2},
        {"split_method": "partially_random", "feature_cycle": "random"},
        {"candidates": "quantiles", "n_candidates": 3},
    ],
    ids=str,
)
def test_the_price_of_the_plan_is_what_the_ledger_has_granted_and_all_of_it_is_drawn(options):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(0, 1, (60, M)), generator.integers(0, 2, 60)
    model = FederatedGBDTClassifier(
        epsilon=1.0, delta=1e-6, schema=CLASSES, **{"n_estimators": 4, "max_depth": 2, "max_bins": 32} | options
    ).fit(X, y)
    quote = lw.price(model.plan_.event).epsilon(1e-6)
    assert model.privacy_.epsilon == quote <= 1.0
    assert quote == pytest.approx(1.0, rel=1e-3)
    draws = len(model.ledger_.entries) - 2  # the opening and the grant
    assert draws == sum(count for _, count in model.plan_.event.draws())


MIXED = (
    lw.Numeric("a", 0.0, 1.0),
    lw.Categorical("b", ("u", "v", "w"), missing=True),
    lw.Numeric("c", -1.0, 1.0, missing=True),
)
TARGETS = {1: lw.Numeric("y", 0.0, 1.0), 2: lw.Categorical("y", (0, 1)), 3: lw.Categorical("y", (0, 1, 2))}


def mixed(n=40):
    generator = np.random.default_rng(3)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(np.array(["u", "v", "w"], dtype=object), n)
    X[:, 2] = np.where(generator.uniform(size=n) < 0.2, np.nan, generator.uniform(-1, 1, n))
    return X, generator


@pytest.fixture
def released(monkeypatch):
    """Every event that a round gives up, and how many numbers come with it."""
    events, sizes = Counter(), []
    take, release = CuratorRound._take, CuratorRound.release

    def taking(self, event, purpose):
        take(self, event, purpose)
        for part, count in event.draws():
            events[part] += count

    def releasing(self, query, mechanism, *, purpose):
        found = release(self, query, mechanism, purpose=purpose)
        sizes.append(found.value.size)
        return found

    monkeypatch.setattr(CuratorRound, "_take", taking)
    monkeypatch.setattr(CuratorRound, "release", releasing)
    return events, sizes


COMBINATIONS = {
    "split_method": ("histogram", "partially_random", "totally_random"),
    "update": ("averaging", "gradient", "newton"),
    "candidates": ("uniform", "log", "quantiles", "iterative_hessian"),
    "features_per_tree": (1, 2, "all"),
    "feature_cycle": ("windows", "combinations", "random"),
    "trees_per_batch": (1, 2, 0.5),
    "recalibrate": (None, True),
    "max_depth": (0, 2),
    "n_candidates": (1, 4, 40),
    "refinements": (1, 3),
    "clip": (None, 0.1, 2.0),
    "curvature_scale": (None, 3.33),
    "adjacency": ("add-remove", "zero-out", "replace-one"),
    "initial_score": (None, "moments"),
    "preset": ("recommended", "paper", "tr_batched_ih_ebm"),
    "classes": (1, 2, 3),
    "weight_bound": (None, 4.0),
}


def every_pair(values, seed):
    """Some combinations in which each value of a component comes with each value of every other component."""
    generator, pairs, seen = random.Random(seed), list(itertools.combinations(values, 2)), set()
    while len(seen) < sum(len(values[a]) * len(values[b]) for a, b in pairs):
        drawn = [{name: generator.choice(each) for name, each in values.items()} for _ in range(10)]
        news = [{(a, b, each[a], each[b]) for a, b in pairs} - seen for each in drawn]
        most = max(range(10), key=lambda place: len(news[place]))
        seen |= news[most]
        yield drawn[most]


FITS = [(noise, each) for seed, noise in enumerate(("gaussian", "skellam")) for each in every_pair(COMBINATIONS, seed)]


@pytest.mark.slow  # fits each pair of values of two components
@pytest.mark.parametrize(("noise", "options"), FITS, ids=lambda value: value if isinstance(value, str) else "")
def test_any_combination_releases_its_events_and_its_ledger_adds_up(noise, options, released):
    """What rounds give up is the plan's event, no more and no less; a stranger re-adds the plan's own price."""
    options = dict(options)
    classes, weight_bound = options.pop("classes"), options.pop("weight_bound")
    if options["update"] == "averaging" or classes == 1:
        options["recalibrate"] = None
    if options["update"] == "averaging" or classes == 3:
        options["initial_score"] = None
    if noise == "skellam":  # all that is sums, with noise that clients can share
        options |= {"noise": "skellam", "candidates": options["candidates"].replace("quantiles", "iterative_hessian")}
        weight_bound = None
    schema = lw.Schema(features=MIXED, target=TARGETS[classes], weight_bound=weight_bound)
    X, generator = mixed()
    y = generator.uniform(0, 1, 40) if classes == 1 else generator.integers(0, classes, 40)
    estimator = FederatedGBDTRegressor if classes == 1 else FederatedGBDTClassifier
    model = estimator(epsilon=1.0, delta=1e-6, schema=schema, n_estimators=3, max_bins=8, **options)
    model.fit(X, y, sample_weight=None if weight_bound is None else generator.uniform(0, 4, 40))
    wanted = Counter()
    for part, count in model.plan_.event.draws():
        wanted[part] += count
    assert released[0] == wanted
    if noise == "skellam":
        require_shared_noise(model.plan_.event)
    assert model.privacy_.epsilon == lw.price(model.plan_.event).epsilon(1e-6) <= 1.0
    report = verify_ledger(model.ledger_, head=model.privacy_.ledger_head)
    # The verifier counts its own upper bound where that is larger than the charge, by less than 1 %.
    assert model.privacy_.epsilon <= report.epsilon_readded <= 1.01 * model.privacy_.epsilon
    assert [grant.verdict for grant in report.verdicts] == ["confirmed"]
    assert np.isfinite(model.predict(X).astype(float)).all()


@pytest.mark.slow_after(4)  # many fits and plans
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"split_method": "histogram"},
        {"split_method": "histogram", "candidates": "iterative_hessian"},
        {"split_method": "partially_random"},
        {"candidates": "iterative_hessian"},
        {"candidates": "iterative_hessian", "feature_cycle": "random", "features_per_tree": 2},
        {"recalibrate": True},
    ],
    ids=str,
)
def test_words_up_are_what_is_released(changes, released):
    """As many where every tree has all features; no fewer where the widest ones stand for those of a tree."""
    schema = lw.Schema(features=MIXED, target=TARGETS[2]).resolved(3)
    start = preset_plan("tr_newton", "logistic", BUDGET, None, (True, False, True))
    made = dataclasses.replace(start, n_estimators=4, max_depth=2, max_bins=8, n_candidates=4, **changes).calibrated(
        BUDGET
    )
    X, generator = mixed()
    model = FederatedGBDTClassifier(
        epsilon=1.0, delta=1e-6, schema=schema, preset="tr_newton", n_estimators=4, max_depth=2, max_bins=8,
        n_candidates=4,
        **changes,
    ).fit(X, generator.integers(0, 2, 40))  # fmt: skip
    assert model.plan_ == made
    sent = made.communication(schema.cells(made.max_bins))
    assert sent.rounds == len(released[1])
    if made.feature_cycle == "random":
        assert sent.words_up >= sum(released[1])
    else:
        assert sent.words_up == sum(released[1])


def test_rounds_of_trees_that_are_asked_together():
    """Means are one batch; of histograms that refine the next ones' candidates the roots come one after another."""
    cells = CLASSES.cells(32)
    means = plan(update="averaging", loss="squared", clip=1.0, trees_per_batch=1)
    assert means.communication(cells).rounds == 1
    refined = plan(split_method="histogram", candidates="iterative_hessian", trees_per_batch=T)
    assert refined.communication(cells).rounds == D + S


@pytest.mark.slow  # many fits and plans
def test_noise_beyond_a_grid_is_refused_before_anything_is_spent(released):
    """The recalibration's counts need more noise than the pairs of a small clip."""
    X, generator = mixed()
    schema = lw.Schema(features=MIXED, target=TARGETS[2])
    with pytest.raises(InvalidParameter, match=r"too small for .* queries: .*; what would fit: epsilon="):
        FederatedGBDTClassifier(
            epsilon=1e-10,
            delta=1e-18,
            schema=schema,
            preset="tr_batched_ih_ebm",
            n_estimators=2,
            clip=1e-5,
            curvature_scale=1e-5,
        ).fit(X, generator.integers(0, 2, 40))
    assert not released[0]


PLAIN = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", (0, 1)))


@pytest.mark.slow  # calibrates the plan that a refusal suggests
def test_what_would_fit_does_fit():
    model = FederatedGBDTClassifier(epsilon=1e-10, delta=1e-18, schema=PLAIN, noise="skellam")
    with pytest.raises(CalibrationFailed, match="what would fit") as refused:
        model.make_plan(PLAIN)
    enough = float(str(refused.value).rsplit("epsilon=", 1)[1].split(" or ")[0])
    model.set_params(epsilon=enough).make_plan(PLAIN)
    with pytest.raises(CalibrationFailed):
        model.set_params(epsilon=enough / 1.2).make_plan(PLAIN)


def test_noise_that_alone_keeps_a_plan_from_fitting_is_named():
    model = FederatedGBDTClassifier(epsilon=1e-10, delta=1e-6, schema=PLAIN, noise="skellam")
    with pytest.raises(CalibrationFailed, match=r"noise='skellam' does not fit: .* too small .*; set noise=None$"):
        model.make_plan(PLAIN)
    model.set_params(noise=None).make_plan(PLAIN)


def test_histograms_beyond_memory_are_refused_before_anything_is_spent(released):
    X, generator = mixed()
    schema = lw.Schema(features=MIXED, target=TARGETS[2])
    with pytest.raises(InvalidParameter, match="sums"):
        FederatedGBDTClassifier(
            schema=schema, preset="feverless", n_estimators=1, max_depth=20, max_bins=64, n_candidates=60
        ).fit(X, generator.integers(0, 2, 40))
    assert not released[0]


def test_communication_of_totally_random_trees():
    made = plan(trees_per_batch=3)
    sent = made.communication(CLASSES.cells(made.max_bins), n_clients=10)
    leaves = 2**D
    assert sent.rounds == 2  # two batches, whose trees' leaves come together
    assert sent.words_up == T * 2 * leaves
    assert sent.words_down == T * (2 * (leaves - 1) + leaves - 1 + 1)
    assert sent.bytes_in_all == 10 * 8 * (sent.words_up + sent.words_down)
    assert sent.bytes_up * sent.rounds == 8 * sent.words_up


def test_communication_of_histograms():
    made = plan(split_method="histogram", recalibrate=True)
    sent = made.communication(CLASSES.cells(made.max_bins))
    assert sent.rounds == T * D + 1
    # Q thresholds make Q + 1 bins, of which the grid of 32 steps allows 32.
    assert sent.words_up == T * 2 * M * 32 * (2**D - 1) + 2 * 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_depth": 21}, "max_depth"),
        ({"trees_per_batch": 0}, "trees_per_batch"),
        ({"candidates": 0}, "candidates"),
        ({"features_per_tree": 0}, "features_per_tree"),
        ({"split_method": "greedy"}, "split_method"),
        ({"update": "averaging"}, "averaging"),
        ({"curvature_scale": 3.4}, "curvature_scale"),
        ({"max_delta_step": 1e308, "learning_rate": 1e308}, "max_delta_step"),
        ({"loss": "squared", "recalibrate": True}, "recalibrate"),
        ({"candidates": "quantiles", "max_bins": 2000}, "quantiles"),
        ({"numeric_features": (7,)}, "numeric_features"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes, message):
    start = preset_plan("tr_newton", "logistic", BUDGET, None, (True,) * M)
    with pytest.raises(InvalidParameter, match=message):
        dataclasses.replace(start, **changes)


@pytest.mark.slow  # many fits and plans
def test_a_budget_that_is_too_small_is_refused_before_anything_is_spent():
    X, y = np.full((4, M), 0.5), np.array([0, 1, 0, 1])
    with pytest.raises(PrivacyError, match="epsilon"):
        FederatedGBDTClassifier(epsilon=1e-12, delta=1e-15, schema=CLASSES).fit(X, y)


def test_mu_squared_of_joint_releases_is_a_whole_number_of_queries():
    made = plan(split_method="histogram")
    assert Fraction(multiplier(made.event_of("sums", 4))) == pytest.approx(Fraction(3.5), rel=1e-12)


def labels(X):
    return (X[:, 0] + X[:, 1] > 1.0).astype(int)


@pytest.mark.slow  # learns with each component
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "tr_batched_ih_ebm"},
        {"preset": "feverless", "n_estimators": 8},
        {"preset": "feverless", "n_estimators": 40, "features_per_tree": 1},
        {"preset": "dp_gbm", "n_estimators": 8},
        {"preset": "dp_rf"},
        {"split_method": "partially_random", "n_estimators": 20},
        {"candidates": "quantiles", "n_candidates": 8},
        {"candidates": "log", "max_bins": 64},
        {"feature_cycle": "random"},
        {"feature_cycle": "combinations"},
        {"candidates": "iterative_hessian", "split_method": "histogram", "n_estimators": 8, "max_bins": 128},
    ],
    ids=str,
)
def test_without_much_noise_every_component_learns(options):
    generator = np.random.default_rng(1)
    X = generator.uniform(0, 1, (2000, M))
    model = FederatedGBDTClassifier(epsilon=1e4, delta=1e-6, schema=CLASSES, random_state=0, **options)
    model.fit(X[:1500], labels(X[:1500]))
    assert (model.predict(X[1500:]) == labels(X[1500:])).mean() > 0.85


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("options", [{}, {"preset": "dp_rf"}, {"preset": "paper"}, {"preset": "feverless"}], ids=str)
def test_a_regressor_learns(options):
    generator = np.random.default_rng(1)
    X = generator.uniform(0, 1, (2000, M))
    y = 0.8 * X[:, 0]
    model = FederatedGBDTRegressor(epsilon=1e4, delta=1e-6, schema=NUMBERS, random_state=0, **options)
    model.fit(X[:1500], y[:1500])
    assert np.mean((model.predict(X[1500:]) - y[1500:]) ** 2) < 0.8 * np.var(y)


def test_a_tree_of_histograms_is_the_best_split():
    """Without noise, one level, one tree: the test and the leaves are those of an exhaustive search."""
    generator = np.random.default_rng(2)
    X = generator.uniform(0, 1, (500, 3))
    y = (X[:, 1] > 0.4).astype(int)
    schema = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", (0, 1)))
    model = FederatedGBDTClassifier(
        epsilon=1e9, delta=1e-6, schema=schema, preset="feverless", n_estimators=1, max_depth=1, max_bins=10,
        n_candidates=9,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    tree = model.ensemble_.trees[0]
    cells = np.minimum((X * 10).astype(int), 9)

    def gain(j, t):
        left = cells[:, j] < t
        return sum((0.5 - y[side]).sum() ** 2 / (0.25 * side.sum() + 1.0) for side in (left, ~left))

    best = max(((j, t) for j in range(3) for t in range(1, 10)), key=lambda test: gain(*test))
    assert (tree.structure.feature[0], tree.structure.split[0]) == best
    left = cells[:, best[0]] < best[1]
    for value, side in zip(tree.values, (left, ~left), strict=True):
        step = -(0.5 - y[side]).sum() / (0.25 * side.sum() + 1.0)
        assert value == pytest.approx(0.3 * np.clip(step, -2, 2), abs=1e-2)
