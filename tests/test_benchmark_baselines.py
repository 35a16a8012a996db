"""The baselines of benchmarks/: each does what it says on small cases, and is as sound or unsound as it is labelled."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import baselines
from benchmarks.baselines import BDPT, DPGDF, Branch, DeepPartitionAggregation, Leaf, RandomTree, Split
from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.mechanisms import SeededRandom

SCHEMA = Schema(
    features=(Numeric("x", 0, 10), Categorical("c", ("a", "b", "z"))),
    target=Categorical("y", ("no", "yes")),
)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 2), dtype=object)
    X[:, 0] = rng.uniform(0, 10, n)
    X[:, 1] = np.array(["a", "b", "z"])[rng.integers(3, size=n)]
    y = np.where(rng.random(n) < np.where(X[:, 1] == "b", 0.9, 0.1), "yes", "no")
    return X, y


def test_codes_are_clamped_and_unseen_categories_come_last():
    X = np.array([[-3.0, "b"], [99.0, "new"], [5.0, "a"]], dtype=object)
    assert baselines.code_table(X, SCHEMA).tolist() == [[0, 1], [10, 3], [5, 0]]


def test_nodes_route_by_thresholds_equality_and_branches():
    tree = Split(0, 2.0, False, Branch(1, (Leaf(0), Leaf(1), Leaf(2))), Split(1, 1.0, True, Leaf(3), Leaf(4)))
    X = np.array([[2.0, 0], [1, 1], [0, 2], [3, 1], [3, 0], [3, 2]])
    assert baselines.labels_of(tree, X).tolist() == [0, 1, 2, 3, 4, 4]


# ------------------------------------------------------------------------------------------------------- random tree


def unlabelled(node):
    if isinstance(node, Leaf):
        return None
    return replace(node, first=unlabelled(node.first), second=unlabelled(node.second))


def test_a_random_trees_splits_do_not_depend_on_rows():
    trees = []
    for seed, n in ((0, 50), (1, 3)):
        model = RandomTree(1.0, SCHEMA, depth=3, source=SeededRandom(0))
        model.rng = np.random.default_rng(5)
        trees.append(unlabelled(model.fit(*rows(n, seed)).tree_))
    assert trees[0] == trees[1]
    assert trees[0].first.first is not None


def permute_and_flip_law(counts, epsilon):
    """Over every order of candidates, each taken with probability exp(-epsilon * its gap)."""
    top = max(counts)
    law = [0.0] * len(counts)
    orders = list(itertools.permutations(range(len(counts))))
    for order in orders:
        left = 1.0 / len(orders)
        for place in order:
            taken = math.exp(-epsilon * (top - counts[place]))
            law[place] += left * taken
            left *= 1.0 - taken
    return law


def test_a_random_trees_labels_follow_permute_and_flip_and_cost_epsilon():
    epsilon, draws, counts = 0.5, 4_000, (3, 1)
    X, y = np.array([[1.0, "a"]] * 4, dtype=object), np.array(["no"] * 3 + ["yes"])
    model = RandomTree(epsilon, SCHEMA, depth=0, source=SeededRandom(1))
    found = np.mean([model.fit(X, y).predict(X)[0] == "yes" for _ in range(draws)])
    law = permute_and_flip_law(counts, epsilon)
    assert abs(found - law[1]) < 5 * math.sqrt(law[0] * law[1] / draws)
    for a, b in itertools.product(range(6), range(6)):
        for neighbour in ((a + 1, b), (a, b + 1)):
            ratios = np.log(permute_and_flip_law((a, b), epsilon)) - np.log(permute_and_flip_law(neighbour, epsilon))
            assert np.abs(ratios).max() <= epsilon + 1e-12


def test_a_random_tree_with_much_budget_has_the_majority_of_its_leaves():
    X, y = rows(400)
    model = RandomTree(1e6, SCHEMA, depth=4).fit(X, y)
    assert np.mean(model.predict(X) == y) >= max(np.mean(y == "no"), np.mean(y == "yes"))


# ------------------------------------------------------------------------------------------------- BDPT and DPGDF


def test_impurities_are_rows_times_gini():
    lefts, totals = np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([5.0, 4.0])
    gini = lambda *counts: 1.0 - sum((c / sum(counts)) ** 2 for c in counts)  # noqa: E731
    assert baselines.impurities(lefts, totals) == pytest.approx([4 * gini(3, 1) + 5 * gini(2, 3), 9 * gini(5, 4)])


@pytest.mark.parametrize("rows", range(1, 12))
def test_the_impurity_of_n_rows_moves_by_its_sensitivity_at_most(rows):
    """Over all two-class nodes; reached by a pure one, as the errata's table of exact maxima has it."""

    def gini(a, b):
        return 1.0 - (a * a + b * b) / (a + b) ** 2

    largest = max(abs(gini(a, rows - a) - gini(a + 1, rows - a)) for a in range(rows + 1))
    assert largest == pytest.approx(baselines.impurity_sensitivity(rows))


def test_smooth_sensitivity_bounds_the_local_one_and_changes_slowly():
    smooth = [baselines.smooth_impurity_sensitivity(n, 0.2) for n in range(1, 60)]
    assert all(s >= baselines.impurity_sensitivity(n) for n, s in enumerate(smooth, start=1))
    assert np.abs(np.diff(np.log(smooth))).max() <= 0.2 + 1e-12


def test_means_of_five_neighbours_are_the_thresholds():
    values = np.array([0.0, 1, 2, 3, 4, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 12])
    assert baselines.means_of_neighbours(values).tolist() == [2.0, 10.0, 12.0]


def test_bdpt_publishes_means_of_exact_values():
    """One row more moves every later group: two neighbours have no threshold in common, which no epsilon allows."""
    values = np.sort(np.random.default_rng(0).uniform(1, 10, 20))
    with_row = np.concatenate([[0.5], values])
    assert not set(baselines.means_of_neighbours(values)) & set(baselines.means_of_neighbours(with_row))
    schema = Schema(features=SCHEMA.features[:1], target=SCHEMA.target)
    y = np.array(["no", "yes"] * 10)
    tree = BDPT(1.0, schema, depth=1).fit(values[:, None], y).tree_
    assert tree.threshold in baselines.means_of_neighbours(values)
    assert BDPT.sound is False


def test_smooth_labels_lose_more_than_epsilon():
    """Two classes, exact laws: at epsilon .1, a gap of 40 against 41 rows loses 2.7 times what is claimed."""

    def minority(gap):
        return baselines.smooth_label_log_weights(np.array([gap, 0.0]), 0.1)

    def log_probability(gap):
        return -math.log1p(math.exp(0.05 * math.exp(0.1 * gap)))

    for gap in (0, 40, 41, 60):
        weights = minority(gap)
        assert weights[1] - np.logaddexp.reduce(weights) == pytest.approx(log_probability(gap), rel=1e-9)
    assert (log_probability(40) - log_probability(41)) / 0.1 == pytest.approx(2.717, abs=1e-3)
    assert log_probability(85) - log_probability(86) > 10.0
    assert DPGDF.sound is False


@pytest.mark.parametrize("kind", [BDPT, DPGDF])
def test_greedy_trees_with_much_budget_find_the_split(kind):
    X, y = rows(600)
    model = kind(1e5, SCHEMA, depth=1).fit(X, y)
    assert model.tree_.feature == 1
    assert (model.predict(X) == np.where(X[:, 1] == "b", "yes", "no")).all()


def test_dpgdf_wants_a_categorical_feature():
    with pytest.raises(ValueError, match="categorical"):
        DPGDF(1.0, Schema(features=SCHEMA.features[:1], target=SCHEMA.target))


# --------------------------------------------------------------------------------------------------------------- DPA


def test_the_certificate_is_exact_for_votes():
    """Every way to move votes: the prediction holds up to the radius, and some way beyond it changes the prediction."""
    for votes in itertools.product(range(6), repeat=3):
        total = sum(votes)
        if total == 0:
            continue
        (radius,) = baselines.certified_rows(np.array([votes]))
        chosen = int(np.argmax(votes))
        first_change = min(
            (
                sum(abs(a - b) for a, b in zip(votes, (p, q, total - p - q), strict=True)) // 2
                for p in range(total + 1)
                for q in range(total + 1 - p)
                if int(np.argmax((p, q, total - p - q))) != chosen
            ),
        )
        assert first_change == radius + 1


def test_no_poisoned_rows_within_the_certificate_change_a_prediction():
    """Every way to add or take away one row of a universe of twelve, and every twelfth way to do so twice."""
    universe = [((float(x), c), label) for x in (2, 8) for c in ("a", "b", "z") for label in ("no", "yes")]
    clean = [((2.0, "a"), "no"), ((2.0, "b"), "no"), ((8.0, "a"), "no"), ((8.0, "z"), "no"), ((2.0, "z"), "no"),
             ((8.0, "b"), "yes")]  # fmt: skip
    test = np.array([[x, c] for x in (2.0, 8.0) for c in ("a", "b", "z")], dtype=object)

    def fitted(chosen):
        X = np.array([row for row, _ in chosen], dtype=object).reshape(-1, 2)
        y = np.array([label for _, label in chosen], dtype=object)
        return DeepPartitionAggregation(1.0, SCHEMA, depth=2, trees=5).fit(X, y)

    def changed(chosen):
        yield from ([*chosen, row] for row in universe)
        yield from ([*chosen[:i], *chosen[i + 1 :]] for i in range(len(chosen)))

    model = fitted(clean)
    predicted, radii = model.predict(test), model.certified_rows(test)
    assert set(radii.tolist()) & {1, 2}
    nearest = list(changed(clean))
    second = [far for near in nearest[::3] for far in itertools.islice(changed(near), 0, None, 4)]
    for poisons, poisoned in ((1, nearest), (2, second)):
        held = radii >= poisons
        for chosen in poisoned:
            assert (fitted(chosen).predict(test)[held] == predicted[held]).all()


def test_a_row_stays_in_its_part_whatever_the_others_are():
    X, y = rows(60)
    whole = DeepPartitionAggregation(1.0, SCHEMA, trees=7).fit(X, y)
    shuffled = np.random.default_rng(3).permutation(60)
    again = DeepPartitionAggregation(1.0, SCHEMA, trees=7).fit(X[shuffled], y[shuffled])
    assert (whole.votes(X) == again.votes(X)).all()
    assert (whole.votes(X).sum(axis=1) == 7).all()


def test_every_baseline_says_whether_it_is_sound():
    kinds = (RandomTree, BDPT, DPGDF, DeepPartitionAggregation)
    assert [kind.sound for kind in kinds] == [True, False, False, False]
    assert all(len(kind.reason) > 20 for kind in kinds)
