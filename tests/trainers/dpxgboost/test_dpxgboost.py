"""DP-XGBoost: every option's plan costs what the ledger charged, draws all of it, and does what plain numpy does."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.curator import CellCounts, CellHessians, Curator, LeafCounts, Table, encode_features
from ledgerwood.ensemble import SplitTests, TreeStructure
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter, UnsupportedEvent
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import DPXGBoostClassifier, DPXGBoostRegressor
from ledgerwood.trainers.dpxgboost.plan import preset_plan
from ledgerwood.trainers.dpxgboost.training import train
from ledgerwood.trainers.parts.candidates import quantile_thresholds
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
SMALL = {"n_estimators": 3, "max_depth": 2, "max_bins": 16, "n_candidates": 4}


def all_tests(thresholds, cells):
    """All tests of these thresholds, and of equality."""
    none = np.empty(0, dtype=np.int64)
    return SplitTests.every(cells, [thresholds.get(feature, none) for feature in range(len(cells))])


def rows(n, seed=0):
    generator = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(["red", "blue", "green"], n)
    X[:, 2] = np.where(generator.random(n) < 0.2, np.nan, generator.uniform(-5, 105, n))
    signal = X[:, 0].astype(float) * 6 + np.where(X[:, 1] == "red", 3.0, 0.0)
    return X, signal + generator.uniform(0, 1, n)


def regressor(**options):
    return DPXGBoostRegressor(**({"schema": REGRESSION} | SMALL | options))


def fitted(*, n=60, classes=False, **options):
    X, y = rows(n)
    if not classes:
        return regressor(**options).fit(X, y)
    return DPXGBoostClassifier(**({"schema": CLASSIFICATION} | SMALL | options)).fit(X, np.where(y > 5, "yes", "no"))


OPTIONS = [
    {"preset": "paper"},
    {"preset": "paper", "min_child_weight_by": "levels", "subsample": 0.5, "initial_score": "laplace"},
    {"preset": "paper", "sketch": "once", "adjacency": "zero-out"},
    {"preset": "paper", "adjacency": "replace-one", "initial_score": "public_count", "expected_rows": 60},
    {"preset": "paper", "leaf_release": "ratio", "sketch": "none"},
    {"preset": "paper", "max_depth": 0},
    {"preset": "default", "sketch": "tree", "min_child_weight_by": "levels"},
    {"preset": "default", "adjacency": "replace-one", "min_child_weight_by": "levels", "sketch": "tree"},
    {"preset": "default", "classes": True},
    {"preset": "default", "classes": True, "initial_score": "laplace", "sketch": "once"},
    {"preset": "paper", "classes": True},
    {"preset": "paper", "classes": True, "loss": "logistic"},
]


def exact_pure(plan):
    """T log(1 + q (exp(sum of a tree's parts) - 1)) + what comes first, in 50 digits, from the plan's own numbers."""
    parts = plan.tree_event.event.events if plan.subsample < 1.0 else plan.tree_event.events
    with mpmath.workdps(50):
        tree = mpmath.fsum(
            1 / mpmath.mpf(part.noise_multiplier) if isinstance(part, lw.LaplaceEvent) else mpmath.mpf(part.epsilon)
            for part in parts
        )
        first = mpmath.fsum(1 / mpmath.mpf(event.noise_multiplier) for event in plan.initial.events)
        if plan.sketched and plan.sketch == "once":
            first += 1 / mpmath.mpf(plan.count_event(plan.sketch_epsilon).noise_multiplier)
        return first + plan.n_estimators * mpmath.log1p(plan.subsample * mpmath.expm1(tree))


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("options", OPTIONS)
def test_a_pure_plan_costs_the_whole_budget_and_draws_all_that_was_granted(options):
    model = fitted(epsilon=0.7, **options)
    plan, privacy = model.plan_, model.privacy_
    priced = lw.price(plan.event).epsilon(0.0)
    exact = exact_pure(plan)
    assert exact <= priced <= exact * (1 + mpmath.mpf("1e-13"))
    assert 0.7 * (1 - 1e-9) < priced <= 0.7
    assert plan.event.adjacency is Adjacency(options.get("adjacency", "add-remove"))
    grants = [entry for entry in model.ledger_.entries if isinstance(entry, GrantEntry)]
    draws = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert [grant.event for grant in grants] == [plan.event]
    assert grants[0].charge.epsilon == priced == privacy.epsilon
    assert len(draws) == sum(count for _, count in plan.event.draws())
    if plan.subsample < 1.0:  # one draw a tree, whatever it releases
        once = plan.sketched and plan.sketch == "once"
        assert len(draws) == len(plan.initial.events) + once + plan.n_estimators
    assert (privacy.certified, privacy.randomness, privacy.delta) == (True, "secure", 0.0)
    report = verify_ledger(model.ledger_, head=privacy.ledger_head)
    assert report.epsilon_readded == pytest.approx(0.7, rel=1e-9)
    assert [tree.structure.depth for tree in model.ensemble_.trees] == [plan.max_depth] * 3


@pytest.mark.slow_after(1)  # composes the losses of greedy trees
@pytest.mark.parametrize(
    "options",
    [{"preset": "default", "initial_score": "moments", "n_estimators": 12}, {"preset": "paper", "n_estimators": 6}],
)
def test_with_a_delta_the_same_plan_is_priced_by_composition(options):
    model = fitted(epsilon=1.0, delta=1e-6, **options)
    plan = model.plan_
    assert 0.999 < lw.price(plan.event).epsilon(1e-6) == model.privacy_.epsilon <= 1.0
    pure = plan.without_delta(Budget(epsilon=1.0, delta=1e-6, adjacency=A))
    assert lw.price(pure.event).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    assert plan.tree_epsilon > 1.1 * pure.tree_epsilon
    same = {"tree_epsilon": 1.0, "initial_multiplier": 1.0, "initial_score": "zero"}
    assert dataclasses.replace(pure, **same) == dataclasses.replace(plan, **same)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("adjacency", [A, Adjacency.ZERO_OUT])
@pytest.mark.parametrize("depth", [1, 6])
def test_the_event_is_the_papers(adjacency, depth):
    """Section 4.4: thirds for sketch, splits and leaves of one tree, all on one sample of a tenth of the rows."""
    plan = regressor(preset="paper", adjacency=adjacency, max_depth=depth, epsilon=1.0).make_plan(REGRESSION)
    tree = plan.tree_event
    assert isinstance(tree, lw.PoissonSampled)
    assert tree.sampling_rate == 0.1
    sketch, *levels, leaves = tree.event.events
    each = math.log1p(math.expm1(1 / 3) / 0.1) / 3
    assert plan.tree_epsilon == pytest.approx(3 * each, rel=1e-9)
    assert sketch.pure_epsilon() == pytest.approx(each, rel=1e-9)
    assert leaves.pure_epsilon() == pytest.approx(each, rel=1e-9)
    assert [level.pure_epsilon() for level in levels] == [pytest.approx(each / depth, rel=1e-9)] * depth
    assert plan.split_mechanism.rate == pytest.approx(each / depth / 4.0, rel=1e-9)
    assert plan.event == lw.Composed((lw.Repeated(tree, count=3),))


def test_noise_is_the_papers():
    """Lap(m / epsilon) on each count of the sketch; 1 / b_n + g* / b_g on the leaves; numbers of rows by level."""
    plan = regressor(preset="paper", epsilon=2.0, min_child_weight_by="levels", clip=0.5).make_plan(REGRESSION)
    sketch = plan.count_noise(plan.sketch_epsilon, CellCounts(features=(0, 2), cells=16))
    assert sketch.scales == (pytest.approx(2 / plan.count_event(plan.sketch_epsilon).pure_epsilon(), rel=1e-12),)
    weights = plan.count_noise(plan.weight_epsilon, LeafCounts().of(TreeStructure.root()))
    assert weights.scales == (pytest.approx(1 / plan.count_event(plan.weight_epsilon).pure_epsilon(), rel=1e-12),)
    rows_scale, sum_scale = plan.leaf_mechanism().scales
    spent = Fraction(plan.leaf_epsilon)
    assert 1 / Fraction(rows_scale) + Fraction(0.5) / Fraction(sum_scale) <= spent
    assert 1 / rows_scale == pytest.approx(plan.count_share * float(spent), rel=1e-12)


@pytest.mark.slow  # many fits and plans
def test_parts_that_are_not_bought_leave_their_share_to_the_others():
    def parts(**options):
        plan = regressor(preset="paper", epsilon=1.0, max_depth=2, **options).make_plan(REGRESSION)
        return {name: plan.epsilon_of(name) / plan.tree_epsilon for name in plan.shares}

    third = pytest.approx(1 / 3)
    assert parts() == {"leaves": third, "splits": third, "sketch": third}
    assert parts(sketch="none") == {"leaves": pytest.approx(0.5), "splits": pytest.approx(0.5)}
    assert parts(sketch="once") == parts(sketch="none")
    levels = parts(min_child_weight_by="levels", weight_share=2.0)
    assert levels == {
        n: pytest.approx(s) for n, s in [("leaves", 0.2), ("splits", 0.2), ("sketch", 0.2), ("weights", 0.4)]
    }
    only = lw.Schema(features=(lw.Categorical("c", ("a", "b")),), target=lw.Numeric("y", 0, 1))
    plan = DPXGBoostRegressor(preset="paper", schema=only).make_plan(only)
    assert set(plan.shares) == {"leaves", "splits"}, "no numeric feature, no sketch"
    assert set(regressor(max_depth=0).make_plan(REGRESSION).shares) == {"leaves"}


class Watched:
    """A curator, and what its rounds released and from which rows."""

    def __init__(self, curator, table, monkeypatch):
        self.curator, self.schema = curator, curator.schema
        self.trees, self.seen = [], []
        sample, reader, evidence = table.sample, table.reader, table.evidence
        monkeypatch.setattr(Table, "sample", lambda _, rate, source: sample(rate, source))
        for name, of in (("reader", reader), ("evidence", evidence)):

            def watched(_, query, mechanism=None, *, of=of):
                read = of(query, mechanism)
                return lambda sampled: (
                    self.seen.append((len(self.trees), type(getattr(query, "statistic", query)).__name__, sampled)),
                    read(sampled),
                )[1]

            monkeypatch.setattr(Table, name, watched)

    def open(self, event, *, purpose):
        self.trees.append(self.curator.open(event, purpose=purpose))
        return self.trees[-1]


def watched_training(plan, monkeypatch, n=300):
    X, y = rows(n)
    table = Table.from_data(X, y, REGRESSION, loss="squared", bins=plan.max_bins)
    ledger = Ledger(Budget(epsilon=100.0, delta=0.0, adjacency=plan.adjacency), unit=PrivacyUnit.ROW)
    watched = Watched(Curator(table, ledger.grant(plan.event, purpose="test"), SeededRandom(0)), table, monkeypatch)
    return watched, train(plan, watched)


@pytest.mark.slow  # many fits and plans
def test_one_sample_a_tree_and_another_one_for_the_next(monkeypatch):
    plan = regressor(preset="paper", subsample=0.5, min_child_weight_by="levels").make_plan(REGRESSION)
    watched, _ = watched_training(plan, monkeypatch)
    samples = []
    for tree in (1, 2, 3):
        asked = [(name, sampled) for number, name, sampled in watched.seen if number == tree]
        level = ["SplitGains", "LeafCounts"]
        assert [name for name, _ in asked] == ["CellCounts", *level, *level, "LeafMoments"]
        assert all(sampled is asked[0][1] for _, sampled in asked)
        samples.append(asked[0][1])
    assert len(watched.trees) == 3
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert 0.3 < np.mean(samples[one] == samples[other]) < 0.7  # independent halves of 300 rows
    # All that each draw held was released.
    assert [sum(round_._held.values()) for round_ in watched.trees] == [0, 0, 0]


class Fake:
    """An aggregator without rows: it answers what it was told to, so that a trainer can only go by released values."""

    def __init__(self, answers, choose):
        self.schema, self.answers, self.choose = REGRESSION, answers, choose
        self.queries = []

    def open(self, event, *, purpose):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def release(self, query, mechanism, *, purpose):
        self.queries.append(query)
        value = np.asarray(self.answers[type(getattr(query, "statistic", query)).__name__](query), dtype=float)
        steps = np.round(value / np.array([2.0**e for e in query.grid.exponents])).astype(np.int64)
        return lw.curator.Release(value=steps, grid=query.grid, receipt=None, randomness="test")

    def select(self, query, mechanism, *, purpose):
        self.queries.append(query)
        nodes = query.structure.n_leaves
        chosen = query.tests.taken(np.array([self.choose(query, node) for node in range(nodes)]))
        return lw.curator.Selected(value=chosen, receipt=None, randomness="test")


def fake_training(plan, *, cells=None, leaves=None, levels=None, choose=lambda query, node: node % len(query.tests)):
    answers = {
        "CellCounts": cells or (lambda query: np.ones((len(query.features) * query.cells, 1))),
        "LeafMoments": leaves or (lambda query: np.full((query.structure.n_leaves, 2), (100.0, 10.0))),
        "LeafCounts": levels or (lambda query: np.full((query.structure.n_leaves, 1), 100.0)),
    }
    fake = Fake(answers, choose)
    return fake, train(plan, fake)


@pytest.mark.parametrize("sketch", ["tree", "once"])
def test_candidates_are_quantiles_of_the_released_counts_and_nothing_else(sketch):
    plan = regressor(preset="paper", sketch=sketch).make_plan(REGRESSION)
    asked = []

    def counts(query):
        assert query.features == (0, 2), "the numeric features"
        asked.append(np.random.default_rng(len(asked)).integers(-3, 40, (2, query.cells)).astype(float))
        return asked[-1].reshape(-1, 1)

    fake, _ = fake_training(plan, cells=counts)
    assert len(asked) == (3 if sketch == "tree" else 1)
    cells = REGRESSION.cells(plan.max_bins)
    for tree in range(3):
        own = asked[tree if sketch == "tree" else 0]
        wanted = all_tests(
            {f: quantile_thresholds(c, plan.n_candidates) for f, c in zip((0, 2), own, strict=True)}, cells
        )
        gains = [query for query in fake.queries if type(query).__name__ == "SplitGains"][2 * tree : 2 * tree + 2]
        for query in gains:
            for name in ("feature", "split", "equals", "besides"):
                np.testing.assert_array_equal(getattr(query.tests, name), getattr(wanted, name))
        # Missing values both ways, categories by equality, the missing value itself.
        thresholds = ~wanted.equals & (wanted.feature == 2)
        assert (wanted.besides[thresholds] == plan.max_bins).sum() == (wanted.besides[thresholds] == -1).sum() > 0
        assert set(wanted.feature[wanted.equals]) == {1, 2}


def test_of_the_logistic_loss_a_tree_s_sketch_weighs_rows_by_their_hessians():
    """Section 4.1: a histogram of weights, of the scores so far; counts where all weights are alike, or by choice."""
    plan = regressor(preset="paper").make_plan(REGRESSION)
    logistic = dataclasses.replace(plan, loss="logistic")
    weighted = dataclasses.replace(plan, weighted=True)
    counts = CellCounts(features=(0, 2), cells=plan.max_bins)
    hessians = CellHessians(counts=counts, loss="logistic")
    once = dataclasses.replace(logistic, sketch="once")
    by_count = dataclasses.replace(logistic, sketch_weights="counts")
    assert [each.sketch_of((0, 2)) for each in (plan, once, by_count)] == [counts] * 3
    assert weighted.sketch_of((0, 2)) == CellHessians(counts=counts, loss="squared")
    assert logistic.sketch_of((0, 2)) == hessians
    # The same epsilon, so a quarter of the noise.
    scales = [plan.count_noise(plan.sketch_epsilon, query).scales[0] for query in (counts, hessians)]
    assert scales[1] == pytest.approx(scales[0] / 4.0, rel=1e-12)
    assert logistic.event == by_count.event
    asked = []

    def weights(query):
        asked.append(query)
        return np.linspace(0.0, 8.0, 2 * plan.max_bins).round(2).reshape(-1, 1)

    fake = Fake({"CellHessians": weights, "LeafMoments": lambda query: np.full((query.structure.n_leaves, 2), 100.0)},
                lambda query, node: node % len(query.tests))  # fmt: skip
    grown = train(logistic, fake)
    assert [query.statistic for query in asked] == [hessians] * 3
    assert [query.ensemble.trees for query in asked] == [grown.trees[:number] for number in range(3)]


def test_without_a_sketch_thresholds_are_even_and_public():
    plan = regressor(preset="paper", sketch="none", n_candidates=3, max_bins=16).make_plan(REGRESSION)
    fake, _ = fake_training(plan)
    assert {type(getattr(query, "statistic", query)).__name__ for query in fake.queries} == {
        "SplitGains",
        "LeafMoments",
    }
    tests = fake.queries[0].tests
    assert tests.split[(tests.feature == 0) & ~tests.equals].tolist() == [4, 8, 12]


def test_leaves_pool_what_released_numbers_of_rows_undo():
    """Depth 2, minimum 50: the right split has 30 rows on a side, so that its leaves have one value."""
    plan = regressor(preset="paper", min_child_weight=50.0, learning_rate=0.3, n_estimators=1).make_plan(REGRESSION)
    sums = np.array([[60.0, 6.0], [70.0, -7.0], [30.0, 12.0], [90.0, -6.0]])
    _, ensemble = fake_training(plan, leaves=lambda query: sums)
    values = [-6 / 60.1, 7 / 70.1, -6 / 120.1, -6 / 120.1]
    np.testing.assert_allclose(ensemble.trees[0].values, 0.3 * np.array(values), rtol=1e-6)
    _, whole = fake_training(dataclasses.replace(plan, min_child_weight_by="none"), leaves=lambda query: sums)
    np.testing.assert_allclose(whole.trees[0].values[2:], [0.3 * -12 / 30.1, 0.3 * 6 / 90.1], rtol=1e-6)


def test_a_leaf_is_clamped_to_the_clip_as_algorithm_1_has_it():
    plan = regressor(preset="paper", min_child_weight_by="none", clip=0.5, n_estimators=1).make_plan(REGRESSION)
    sums = np.array([[-4.0, 7.0], [0.0, -0.01], [10.0, -30.0], [100.0, 0.0]])
    _, ensemble = fake_training(plan, leaves=lambda query: sums)
    np.testing.assert_allclose(ensemble.trees[0].values, 0.3 * np.array([-0.5, 0.1, 0.5, 0.0]), atol=1e-5)


def test_levels_undo_splits_before_the_next_one_grows():
    plan = regressor(preset="paper", min_child_weight_by="levels", min_child_weight=50.0, max_depth=3, n_estimators=1)
    plan = plan.make_plan(REGRESSION)
    released = {1: [300.0, 200.0], 2: [250.0, 49.0, 100.0, 100.0], 3: [90.0, 160.0, 99.0, 99.0, 10.0, 90.0, 60.0, 50.0]}
    fake, ensemble = fake_training(
        plan,
        levels=lambda query: np.reshape(released[query.structure.depth], (-1, 1)),
        choose=lambda query, node: node,
    )
    structure = ensemble.trees[0].structure
    _, below, besides, _ = structure.lowered()
    splits = [bool(b or c >= 0) for b, c in zip(below, besides, strict=True)]
    # Node 1 has 49 rows on a side: undone, and 3 and 4 below it, whatever their numbers; node 5 has 10 on a side.
    assert splits == [True, False, True, False, False, False, True]
    at_last = [query for query in fake.queries if type(query).__name__ == "SplitGains"][-1].structure
    assert at_last.lowered()[1][1] == 0, "the third level was chosen below an undone node"


def check_greedy(tree, tests, cells, gradient, part, damping, eta, clip, scores):
    """Each test is one of the best by S^2/(n + lambda) among those its path leaves open; each leaf minus a mean."""
    made = tree.structure
    left_of = np.array([
        (cells[f] == s) if e else (cells[f] < s) | (cells[f] == b)
        for f, s, e, b in zip(tests.feature, tests.split, tests.equals, tests.besides, strict=True)
    ])  # fmt: skip
    names = [*zip(tests.feature, tests.split, tests.equals, tests.besides, strict=True)]
    reached = {0: np.ones(cells.shape[1], bool)}
    for node in range(made.n_leaves - 1):
        counted = reached[node] & part
        S, n = left_of[:, counted] @ gradient[counted], left_of[:, counted].sum(axis=1)
        other, m = gradient[counted].sum() - S, counted.sum() - n
        gain = S**2 / (n + damping) + other**2 / (m + damping)
        chosen = names.index((made.feature[node], made.split[node], made.equals[node], made.besides[node]))
        assert gain[chosen] >= gain[(n > 0) & (m > 0)].max() - 1e-3
        reached[2 * node + 1], reached[2 * node + 2] = reached[node] & left_of[chosen], reached[node] & ~left_of[chosen]
    for leaf in range(made.n_leaves):
        inside = reached[leaf + made.n_leaves - 1]
        counted = inside & part
        value = np.clip(-gradient[counted].sum() / (counted.sum() + damping), -clip, clip)
        assert tree.values[leaf] == pytest.approx(eta * value, abs=1e-4)
        scores[inside] += tree.values[leaf]


@pytest.mark.parametrize(
    ("loss", "large", "clip", "options"),
    [
        ("squared", "drop", 0.6, {}),
        ("squared", "clip", 0.6, {"sketch": "once"}),
        ("squared", "clip", 2.0, {"min_child_weight_by": "levels", "min_child_weight": 1.0}),
        ("squared", "clip", 2.0, {"leaf_release": "ratio", "min_child_weight_by": "none"}),
        ("logistic", "clip", 0.4, {}),
    ],
)
def test_without_noise_trees_are_the_greedy_ones(loss, large, clip, options):
    """At an absurd epsilon the best gain wins, candidates are true quantiles, and what is left is plain boosting."""
    X, y = rows(400, seed=5)
    kind, schema = (DPXGBoostRegressor, REGRESSION) if loss == "squared" else (DPXGBoostClassifier, CLASSIFICATION)
    labels = y if loss == "squared" else np.where(y > 5, "yes", "no")
    model = kind(
        epsilon=ALMOST_NO_NOISE, schema=schema, preset="paper", loss=loss, subsample=1.0, n_estimators=4, max_depth=3,
        max_bins=64, n_candidates=5, large_gradients=large, clip=clip, reg_lambda=0.5,
        **({"min_child_weight": 1.0} | options),
    ).fit(X, labels)  # fmt: skip
    cells = encode_features(X, schema, bins=64).astype(int)
    targets = y / 5.0 - 1.0 if loss == "squared" else np.where(y > 5, 1.0, -1.0)
    numeric = {f: np.bincount(cells[f][cells[f] < 64], minlength=64).astype(float) for f in (0, 2)}
    tests = all_tests({f: quantile_thresholds(c, 5) for f, c in numeric.items()}, schema.cells(64))
    scores = np.zeros(400)
    for tree in model.ensemble_.trees:
        gradient = scores - targets if loss == "squared" else -targets / (1 + np.exp(targets * scores))
        part = np.abs(gradient) <= clip if large == "drop" else np.ones(400, bool)
        check_greedy(tree, tests, cells, np.clip(gradient, -clip, clip), part, 0.5, 0.3, clip, scores)
    assert np.std(scores) > 0.1


def test_the_papers_preset_is_the_published_one():
    """Section 5, and section 4.4 for the thirds."""
    for rows_expected, minimum in ((None, 50.0), (100_000, 50.0), (100_001, 500.0)):
        plan = preset_plan("paper", "squared", Budget(epsilon=1.0, delta=0.0, adjacency=A), rows_expected, 8)
        assert (plan.n_estimators, plan.max_depth, plan.learning_rate, plan.reg_lambda, plan.subsample) == (
            20,
            6,
            0.3,
            0.1,
            0.1,
        )
        assert (plan.clip, plan.large_gradients, plan.loss, plan.initial_score) == (1.0, "drop", "squared", "zero")
        assert (plan.min_child_weight, plan.min_child_weight_by, plan.max_bins, plan.sketch) == (
            minimum, "leaves", 1024, "tree",
        )  # fmt: skip
        assert plan.sketch_share == plan.split_share == plan.leaf_share
    replaced = preset_plan("paper", "squared", Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.REPLACE_ONE), None, 8)
    assert replaced.subsample == 1.0
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        regressor(preset="paper", adjacency="replace-one", subsample=0.1).make_plan(REGRESSION)


def test_the_default_follows_public_quantities_only():
    budget = Budget(epsilon=1.0, delta=0.0, adjacency=A)
    trees = [preset_plan("default", "squared", budget, n, 8).trees for n in (None, 100, 3_000, 30_000, 10**9)]
    assert trees[1] <= trees[2] < trees[3] <= trees[4] <= 400
    assert preset_plan("default", "squared", budget, 3_000, 8).subsample == 1.0
    plan = regressor(epsilon=1.0, expected_rows=3_000).make_plan(REGRESSION)
    assert plan == regressor(epsilon=1.0, expected_rows=3_000).make_plan(REGRESSION)


def test_initial_scores_take_their_share():
    for kind, count in (("laplace", 2), ("public_count", 1)):
        relation = "replace-one" if kind == "public_count" else "add-remove"
        plan = regressor(
            epsilon=2.0, initial_score=kind, initial_share=0.25, adjacency=relation, expected_rows=60, n_estimators=4
        ).make_plan(REGRESSION)
        assert sum(e.pure_epsilon() for e in plan.initial.events) == pytest.approx(0.5, rel=1e-9)
        assert len(plan.initial.events) == count
        assert plan.tree_epsilon == pytest.approx(1.5 / 4, rel=1e-9)
    with pytest.raises(AdjacencyMismatch, match="private under add-remove"):
        regressor(initial_score="public_count", expected_rows=60).make_plan(REGRESSION)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("options", [{"preset": "default", "n_estimators": 50}, {"preset": "paper"}, {"max_depth": 0}])
def test_a_budget_that_is_too_small_is_told_what_would_fit(options):
    model = regressor(epsilon=1e-9, **options)
    ledger = Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(CalibrationFailed, match=r"epsilon=1e-09 nats .*too small .*what would fit") as refusal:
        model.fit(*rows(20), ledger=ledger)
    assert ledger.entries == before
    said = dict(item.split("=") for item in str(refusal.value).split("what would fit: ")[1].split(" or "))
    enough = float(said["epsilon"])
    assert model.set_params(epsilon=enough).make_plan(REGRESSION).tree_epsilon > 0.0
    with pytest.raises(CalibrationFailed):
        model.set_params(epsilon=0.9 * enough).make_plan(REGRESSION)


def test_fewer_trees_are_offered_where_they_would_do():
    model = regressor(preset="paper", n_estimators=10**6, epsilon=1e-2)
    with pytest.raises(CalibrationFailed, match="or n_estimators=") as refusal:
        model.make_plan(REGRESSION)
    fewer = int(str(refusal.value).split("n_estimators=")[1])
    assert model.set_params(n_estimators=fewer).make_plan(REGRESSION)
    with pytest.raises(CalibrationFailed):
        model.set_params(n_estimators=fewer + 1).make_plan(REGRESSION)


PLAN = preset_plan("paper", "squared", Budget(epsilon=1.0, delta=0.0, adjacency=A), None, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_estimators": 0}, "n_estimators=0"), ({"max_depth": -1}, "max_depth=-1"),
        ({"max_depth": 21}, "max_depth=21 .* at most 20"),
        ({"max_bins": 1}, "max_bins=1"), ({"max_bins": 60_001}, "max_bins=60001"),
        ({"n_candidates": 0}, "n_candidates=0"),
        ({"sketch": "always"}, "sketch='always'"),
        ({"sketch_weights": "rows"}, "sketch_weights='rows'"),
        ({"n_numeric": -1}, "n_numeric=-1"),
        ({"subsample": 0.0}, "subsample=0"), ({"tree_epsilon": 0.0}, "tree_epsilon=0"),
        ({"sketch_share": 0.0}, "sketch_share=0"), ({"split_share": -1.0}, "split_share=-1"),
        ({"leaf_share": math.nan}, "leaf_share=nan"), ({"weight_share": 0.0}, "weight_share=0"),
        ({"once_share": 1.0}, "once_share=1"), ({"initial_share": 1.0}, "initial_share=1"),
        ({"once_epsilon": 0.0}, "once_epsilon=0"), ({"count_share": 1.0}, "count_share=1"),
        ({"clip": 0.0}, "clip=0"), ({"clip": 1e9}, "clip=1"), ({"reg_lambda": 0.0}, "reg_lambda=0"),
        ({"learning_rate": 0.0}, "learning_rate=0"), ({"leaf_regularization": "clip"}, "leaf_regularization='clip'"),
        ({"score_noise": 0.0}, "score_noise=0"), ({"pooling": 1.5}, r"pooling=1\.5"),
        ({"min_child_weight": -1.0}, "min_child_weight=-1"), ({"min_child_weight_by": "rows"}, "min_child_weight_by"),
        ({"large_gradients": "keep"}, "large_gradients='keep'"), ({"loss": "newton"}, "loss='newton'"),
        ({"leaf_release": "ratio"}, "leaf_release='ratio' releases no number of rows"),
        ({"leaf_release": "mean"}, "leaf_release='mean'"), ({"initial_score": "mean"}, "initial_score='mean'"),
    ],
)  # fmt: skip
def test_a_plan_refuses_what_is_out_of_bounds(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        dataclasses.replace(PLAN, **changes)


def test_a_tree_too_deep_for_its_candidates_is_refused_before_anything_is_spent():
    ledger = Ledger(Budget(epsilon=9.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW)
    with pytest.raises(InvalidParameter, match=r"max_depth=20 must be at most \d+ for \d+ candidates") as refusal:
        regressor(max_depth=20, max_bins=1024, n_candidates=32).fit(*rows(20), ledger=ledger)
    assert len(ledger.entries) == 1
    deepest = int(str(refusal.value).split("at most ")[1].split(" ")[0])
    plan = regressor(max_depth=deepest, max_bins=1024, n_candidates=32, n_estimators=1).make_plan(REGRESSION)
    # What is refused is what the query would refuse: the bound is on the safe side, and not by more than one level.
    tests = SplitTests.every(REGRESSION.cells(1024))
    assert plan.max_depth == deepest
    assert 2 ** (deepest + 1) * len(tests) > 2**24
