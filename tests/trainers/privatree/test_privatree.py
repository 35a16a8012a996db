"""PrivaTree: every option's plan costs what the ledger charged, draws all of it, and grows what plain numpy grows."""

import itertools
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, GaussianEvent, PureEvent
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.curator import encode_features
from ledgerwood.errors import CalibrationFailed, InvalidParameter
from ledgerwood.mechanisms import DiscreteLaplaceMechanism
from ledgerwood.trainers import PrivaTreeClassifier
from ledgerwood.verification import verify_ledger

FEATURES = (
    lw.Numeric("size", 0.0, 1.0),
    lw.Categorical("colour", ("red", "blue", "grey")),
    lw.Numeric("age", 0, 100, missing=True),
)
SCHEMA = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("no", "perhaps", "yes")))
SHALLOW = {"schema": SCHEMA, "max_depth": 2, "max_bins": 8}
ALMOST_NO_NOISE = 1e9
SPLITS, CANDIDATES = ("accuracy", "gini", "histograms", "random"), ("public", "quantiles")


def rows(n=90, seed=0):
    generator = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(["red", "blue", "grey", "green"], n)
    X[:, 2] = np.where(generator.random(n) < 0.2, np.nan, generator.uniform(-5, 105, n))
    score = X[:, 0].astype(float) + np.where(X[:, 1] == "red", 0.5, 0.0)
    return X, np.where(score > 0.9, "yes", np.where(score > 0.5, "perhaps", "no"))


def classifier(**options):
    return PrivaTreeClassifier(**(SHALLOW | {"candidate_bins": 4} | options))


def plan_of(**options):
    return classifier(**options).make_plan(SCHEMA)


@pytest.mark.slow_after(7)  # many fits and plans
@pytest.mark.parametrize(
    ("splits", "candidates", "adjacency"), [*itertools.product(SPLITS, CANDIDATES, ("add-remove", "replace-one"))]
)
def test_a_pure_plan_costs_the_whole_budget_and_draws_all_that_was_granted(splits, candidates, adjacency):
    model = classifier(epsilon=0.7, split_method=splits, candidates=candidates, adjacency=adjacency).fit(*rows())
    plan, privacy = model.plan_, model.privacy_
    priced = lw.price(plan.event).epsilon(0.0)
    assert 0.7 * (1 - 1e-9) < priced <= 0.7
    assert plan.event.adjacency is Adjacency(adjacency)
    grants = [entry for entry in model.ledger_.entries if isinstance(entry, GrantEntry)]
    draws = [entry for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert [grant.event for grant in grants] == [plan.event]
    assert grants[0].charge.epsilon == priced == privacy.epsilon
    # The quantiles of two features, two levels, the labels, by accuracy with the last level; nothing is left over.
    bought = splits != "random"
    levels = {"accuracy": 1, "random": 0}.get(splits, 2)
    assert len(draws) == levels + (2 if bought and candidates == "quantiles" else 0) + 1
    assert len(draws) == sum(count for _, count in plan.event.draws())
    assert (privacy.certified, privacy.randomness, privacy.delta) == (True, "secure", 0.0)
    report = verify_ledger(model.ledger_, head=privacy.ledger_head)
    assert report.epsilon_readded == pytest.approx(0.7, rel=1e-9)
    (tree,) = model.ensemble_.trees
    assert tree.structure.depth == 2
    assert set(tree.values) <= {0.0, 1.0, 2.0}


@pytest.mark.slow  # composes the losses of greedy trees
@pytest.mark.parametrize("splits", [*SPLITS, "joint_gaussian"])
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_with_a_delta_the_same_plan_is_priced_by_composition(splits, candidates):
    model = classifier(epsilon=1.0, delta=1e-6, split_method=splits, candidates=candidates, max_depth=3).fit(*rows())
    plan = model.plan_
    assert 0.999 < lw.price(plan.event).epsilon(1e-6) == model.privacy_.epsilon <= 1.0
    report = verify_ledger(model.ledger_, head=model.privacy_.ledger_head)
    assert report.verdict == "confirmed"
    (grant,) = report.verdicts  # counted as the larger of its charge and the verifier's own upper bound
    assert report.epsilon_readded == max(grant.charge, grant.upper) <= 1.0001
    if splits != "joint_gaussian":
        pure = plan.without_delta(model.budget)
        assert plan.tree_epsilon >= pure.tree_epsilon * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("splits", SPLITS)
def test_the_events_are_those_of_the_theorem(splits, adjacency):
    """Each part's price from the shares alone; a row is in all m histograms, and in all quantiles."""
    plan = plan_of(epsilon=3.0, split_method=splits, candidates="quantiles", adjacency=adjacency, leaf_share=0.4)
    parts = {}
    for part, count in plan.event.draws():
        parts[part] = parts.get(part, 0) + count
    if splits == "random":
        assert [(type(part), count) for part, count in parts.items()] == [(PureEvent, 1)]
        assert next(iter(parts)).epsilon == pytest.approx(3.0, rel=1e-9)
        return
    # Labels two fifths; of the rest as much for the two features' quantiles as for each level.
    rest = 0.6 * 3.0 / (2 if splits == "accuracy" else 3)
    quantile, level, labels = plan.quantiles.event(plan.adjacency), plan.level_event, plan.label_event
    assert isinstance(quantile, BoundedRangeEvent)
    assert quantile.epsilon == pytest.approx(rest / 2, rel=1e-9)
    assert labels.epsilon == pytest.approx(1.2, rel=1e-9)
    if splits == "accuracy":  # the last level is chosen with the labels
        assert parts == {quantile: 2, level: 1, labels: 1}
        assert level.epsilon == pytest.approx(rest, rel=1e-9)
        moved = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        assert plan.level.rate == pytest.approx(rest / moved, rel=1e-9)
        assert plan.labels.rate == pytest.approx(1.2 / moved, rel=1e-9)
        return
    assert parts == {quantile: 2, level: 2, labels: 1}
    if splits == "gini":
        assert isinstance(level, PureEvent)
        by_range = plan_of(epsilon=3.0, split_method=splits, choice="exponential", adjacency=adjacency, leaf_share=0.4)
        assert isinstance(by_range.level_event, BoundedRangeEvent)
        assert level.epsilon == pytest.approx(rest, rel=1e-9)
        assert plan.level.rate == pytest.approx(rest / (4 if adjacency is Adjacency.REPLACE_ONE else 2), rel=1e-9)
    else:
        assert isinstance(level, PureEvent)  # the geometric mechanism, on as many counts as there are features
        assert level.epsilon == pytest.approx(rest, rel=1e-9)
        moved = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        assert isinstance(plan.level, DiscreteLaplaceMechanism)
        assert plan.level.scale == pytest.approx(3 * moved / rest, rel=1e-9)


def test_joint_gaussian_noise_is_in_proportion_to_the_root_of_the_features():
    plan = plan_of(epsilon=1.0, delta=1e-6, split_method="joint_gaussian", max_depth=2)
    assert isinstance(plan.level_event, GaussianEvent)
    assert plan.level.stddev / plan.level_event.noise_multiplier == pytest.approx(math.sqrt(3), rel=1e-9)


def gini(counts):
    total = sum(counts)
    return total - sum(c * c for c in counts) / total if total else 0.0


def leaf_counts(cells, structure, y, classes):
    leaves = structure.route(cells)
    return [[int(((leaves == leaf) & (y == k)).sum()) for k in classes] for leaf in range(structure.n_leaves)]


@pytest.mark.parametrize("splits", ["gini", "histograms"])
def test_without_noise_the_root_is_the_best_split_and_labels_are_the_commonest(splits):
    X, y = rows(200)
    model = classifier(epsilon=ALMOST_NO_NOISE, split_method=splits, max_depth=1, candidate_bins=8).fit(X, y)
    cells = encode_features(X, SCHEMA, bins=8)
    structure = model.ensemble_.trees[0].structure
    found = sum(map(gini, leaf_counts(cells, structure, y, model.classes_)))
    best = math.inf
    for feature, ordered, missing in ((0, 8, None), (2, 8, 8)):
        for cut in range(1, ordered):
            for also in (False, True) if missing else (False,):
                left = (cells[feature] < cut) | (also & (cells[feature] == (missing or -1)))
                sides = [[int((side & (y == k)).sum()) for k in model.classes_] for side in (left, ~left)]
                best = min(best, sum(map(gini, sides)))
    for category in range(3):
        left = cells[1] == category
        sides = [[int((side & (y == k)).sum()) for k in model.classes_] for side in (left, ~left)]
        best = min(best, sum(map(gini, sides)))
    assert found <= best + 1e-9
    for counts, label in zip(
        leaf_counts(cells, structure, y, model.classes_), model.ensemble_.trees[0].values, strict=True
    ):
        assert counts[int(label)] == max(counts)


def test_without_noise_a_tree_by_accuracy_is_the_best_of_all_that_it_could_be():
    """Depth 2 by brute force over all trees of the two levels and their labels."""
    X, y = rows(120)
    model = classifier(epsilon=ALMOST_NO_NOISE, split_method="accuracy", candidate_bins=8).fit(X, y)
    cells = encode_features(X, SCHEMA, bins=8)
    lefts = [cells[1] == category for category in range(3)]
    for feature, ordered in ((0, 8), (2, 8)):
        lefts += [cells[feature] < cut for cut in range(1, ordered)]
    lefts += [lefts[place] | (cells[2] == 8) for place in range(10, 17)] + [cells[2] == 8]
    codes = np.searchsorted(model.classes_, y)

    def most(side):
        return np.bincount(codes[side], minlength=3).max()

    def best_stump(side):
        return max(most(side & left) + most(side & ~left) for left in lefts)

    best = max(best_stump(left) + best_stump(~left) for left in lefts)
    assert int((model.predict(X) == y).sum()) == best


@pytest.mark.slow  # many fits and plans
def test_without_noise_quantiles_part_the_rows_evenly():
    X, y = rows(400)
    X[:, 0] = X[:, 0] ** 4
    model = classifier(epsilon=ALMOST_NO_NOISE, candidates="quantiles", max_bins=1000, max_depth=6).fit(X, y)
    structure = model.ensemble_.trees[0].structure
    cuts = set(structure.split[(structure.feature == 0) & (structure.split > 0)].tolist())
    exact = np.quantile(X[:, 0].astype(float), [0.25, 0.5, 0.75]) * 1000
    assert cuts
    assert all(np.abs(exact - cut).min() < 15 for cut in cuts)


@pytest.mark.parametrize("splits", SPLITS)
def test_depth_0_is_one_leaf_for_the_whole_budget(splits):
    model = classifier(epsilon=0.5, split_method=splits, candidates="quantiles", max_depth=0).fit(*rows())
    assert model.ensemble_.trees[0].structure.n_leaves == 1
    assert model.plan_.label_event.epsilon == pytest.approx(0.5, rel=1e-9)


def test_a_great_depth_is_for_random_splits_only():
    assert plan_of(split_method="random", max_depth=20).max_depth == 20
    model = classifier(split_method="random", max_depth=11).fit(*rows())
    assert model.ensemble_.trees[0].structure.n_leaves == 2**11
    for splits in ("accuracy", "gini", "histograms"):
        with pytest.raises(InvalidParameter, match="max_depth=20 must be at most 1[0-9]"):
            classifier(split_method=splits, max_depth=20).fit(*rows())


def test_gaussian_noise_needs_a_delta():
    with pytest.raises(InvalidParameter, match="delta"):
        plan_of(split_method="joint_gaussian")


@pytest.mark.parametrize("splits", SPLITS)
def test_a_budget_that_is_too_small_says_what_fits(splits):
    with pytest.raises(CalibrationFailed, match="what would fit: epsilon=") as refused:
        plan_of(epsilon=1e-12, split_method=splits)
    enough = float(str(refused.value).rsplit("epsilon=", 1)[1])
    plan = plan_of(epsilon=enough, split_method=splits)
    assert lw.price(plan.event).epsilon(0.0) <= enough


WRONG = [
    ({"candidate_bins": 1}, "candidate_bins=1"),
    ({"candidate_bins": 9}, "candidate_bins=9"),
    ({"candidates": "quantiles", "max_bins": 2000}, "max_bins=2000"),
    ({"candidates": "quantiles", "max_bins": 200, "candidate_bins": 66}, "candidate_bins=66"),
    ({"leaf_share": 1.0}, "leaf_share"),
    ({"quantile_share": 0.0}, "quantile_share"),
    ({"split_method": "best"}, "split_method"),
    ({"candidates": "exact"}, "candidates"),
    ({"max_depth": -1}, "max_depth"),
    ({"max_depth": 21}, "max_depth"),
    ({"max_bins": 1}, "bins"),
    ({"label_error": 2.0}, "label_error"),
    ({"expected_rows": 0}, "expected_rows"),
    ({"preset": "best"}, "preset"),
]


@pytest.mark.parametrize(("options", "named"), WRONG)
def test_what_is_out_of_bounds_is_named(options, named):
    with pytest.raises(InvalidParameter, match=named):
        plan_of(**options)
