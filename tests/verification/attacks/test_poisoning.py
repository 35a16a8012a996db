"""Guarantees of poisoned learners, against enumerated finite ones, published bounds and exact miss probabilities."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ledgerwood as lw
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.trainers import PrivacyStatement
from ledgerwood.verification.attacks import poisoning
from ledgerwood.verification.attacks.scores import lower_mean

A, R, Z = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE, lw.Adjacency.ZERO_OUT
laws = settings(max_examples=60, deadline=None, derandomize=True)
GOOD = (0.97, 0.98, 0.975, 0.99, 0.985)


def statement(epsilon, *, delta=0.0, randomness="secure", certified=True, adjacency=A):
    return PrivacyStatement(
        epsilon=epsilon, delta=delta, adjacency=adjacency, unit=lw.PrivacyUnit.ROW, method="pure", certified=certified,
        randomness=randomness, assumptions=(), ledger_head="",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------- finite learners


def permute_and_flip(qualities, epsilon):
    """Its law over all orders of the candidates: each is taken with probability e^{epsilon (q - max) / 2}."""
    law = np.zeros(len(qualities))
    for order in itertools.permutations(range(len(qualities))):
        left = 1.0 / math.factorial(len(qualities))
        for candidate in order:
            heads = math.exp(epsilon * (qualities[candidate] - max(qualities)) / 2.0)
            law[candidate] += left * heads
            left *= 1.0 - heads
    return law


def test_every_accuracy_of_a_leaf_label_keeps_the_guarantee_however_its_rows_are_poisoned():
    """A leaf of 6, 3 and 1 rows of three classes; all poisonings by up to three rows, all sets of good labels."""
    epsilon, counts = 0.6, (6, 3, 1)
    clean = permute_and_flip(counts, epsilon)
    budget = lw.Budget(epsilon=epsilon, delta=0.0, adjacency=A)
    moves = [move for move in itertools.product(range(-3, 4), repeat=3) if 0 < sum(map(abs, move)) <= 3]
    tightest = np.inf
    for good in itertools.product((0.0, 1.0), repeat=3):
        before = float(clean @ good)
        least = poisoning.least_expectation(budget, min(before, 1.0), rows=np.arange(4))
        for move in moves:
            poisoned = [n + d for n, d in zip(counts, move, strict=True)]
            if min(poisoned) >= 0:
                after = float(permute_and_flip(poisoned, epsilon) @ good)
                rows = sum(map(abs, move))
                assert after >= least[rows] - 1e-14
                if 0.0 < after < 1.0 - 1e-12:
                    tightest = min(tightest, after / least[rows])
    assert tightest < 1.2  # and it is no empty guarantee


def test_randomised_response_attains_the_bound_of_one_replaced_row():
    epsilon = 0.8
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    for claim in (
        lw.RandomizedResponseEvent(epsilon=epsilon, categories=2, adjacency=R),
        lw.Budget(epsilon=epsilon, delta=0.0, adjacency=R),
    ):
        least = poisoning.least_expectation(claim, keep, rows=1, change="replace")
        assert least.shape == ()
        assert 1.0 - keep >= least
        assert least == pytest.approx(1.0 - keep, rel=1e-9)


def test_a_replaced_row_is_two_steps_where_rows_are_added_or_removed():
    budget = lw.Budget(epsilon=0.1, delta=0.0, adjacency=A)
    twice = poisoning.least_expectation(budget, 0.9, rows=[2, 4, 6])
    for claim in (budget, lw.Budget(epsilon=0.1, delta=0.0, adjacency=Z)):
        assert (poisoning.least_expectation(claim, 0.9, rows=[1, 2, 3], change="replace") == twice).all()
    once = poisoning.least_expectation(budget, 0.9, rows=[1, 2, 3])
    replaced = lw.Budget(epsilon=0.1, delta=0.0, adjacency=R)
    assert (poisoning.least_expectation(replaced, 0.9, rows=[1, 2, 3], change="replace") == once).all()


# -------------------------------------------------------------------------------------------------- published bounds


@laws
@given(st.floats(0.0, 1.0), st.floats(1e-3, 2.0), st.integers(0, 200))
def test_corollaries_are_beaten_everywhere(clean, epsilon, rows):
    budget = lw.Budget(epsilon=epsilon, delta=0.0, adjacency=A)
    accuracy = poisoning.guaranteed_accuracy([clean], budget, rows=rows)
    backdoor = poisoning.backdoor_bound([1.0 - clean], budget, rows=rows)
    published = math.exp(-rows * epsilon) * clean
    assert accuracy.estimated[0] >= published * (1.0 - 1e-12) - 1e-289
    assert backdoor.estimated[0] <= 1.0 - published * (1.0 - 1e-12) + 1e-15
    assert accuracy.guaranteed[0] <= accuracy.estimated[0] <= accuracy.clean <= clean
    assert backdoor.guaranteed[0] >= backdoor.estimated[0] >= backdoor.clean >= 1.0 - clean - 1e-16


def test_the_gain_over_the_published_bound_at_ten_rows():
    """epsilon .1, ten rows, 97.4 % on clean rows: .929 instead of .358."""
    budget = lw.Budget(epsilon=0.1, delta=0.0, adjacency=A)
    least = poisoning.least_expectation(budget, 0.974, rows=10)
    assert least == pytest.approx(1.0 - math.e * 0.026, abs=1e-12)
    assert math.exp(-1.0) * 0.974 == pytest.approx(0.3583, abs=1e-4)


def test_a_plan_says_more_than_the_sum_of_its_parts():
    """The table of docs/explanation/poisoning.md: fifty parts of .02, at 1 to 20 rows."""
    plan = lw.Repeated(lw.PureEvent(epsilon=0.02, adjacency=A), count=50)
    rows = [1, 2, 5, 10, 20]
    expected = [[0.933, 0.913, 0.825, 0.592, 0.122], [0.864, 0.630, 0.031, 0.0002, 0.0]]
    for claim, line in zip((plan, lw.PureEvent(epsilon=1.0, adjacency=A)), expected, strict=True):
        found = poisoning.least_expectation(claim, 0.95, rows=rows)
        assert (found >= line).all()
        assert found == pytest.approx(line, abs=1e-3)


# ------------------------------------------------------------------------------------------------------------ claims


def test_every_kind_of_claim_says_the_same_of_the_same_guarantee():
    rows = np.array([0, 1, 5, 40])
    for delta in (0.0, 1e-4):
        stated = poisoning.least_expectation(lw.Budget(epsilon=0.2, delta=delta, adjacency=A), 0.9, rows=rows)
        fitted = poisoning.least_expectation(statement(0.2, delta=delta), 0.9, rows=rows)
        assert (stated == fitted).all()
    event = lw.ApproximateEvent(epsilon=0.2, delta=1e-4, adjacency=A)
    assert (poisoning.least_expectation(event, 0.9, rows=rows) == stated).all()


def test_a_model_of_test_randomness_guarantees_nothing():
    claim = statement(math.inf, randomness="test")
    assert poisoning.least_expectation(claim, 0.9, rows=[0, 1, 100]).tolist() == [0.9, 0.0, 0.0]
    assert poisoning.guaranteed_accuracy(GOOD, claim, rows=1).guaranteed == (0.0,)
    assert poisoning.backdoor_bound([0.0, 0.1], claim, rows=1).guaranteed == (1.0,)


def test_a_model_that_releases_nothing_cannot_be_poisoned():
    assert poisoning.least_expectation(statement(0.0), 0.9, rows=[1, 1000]).tolist() == [0.9, 0.9]
    assert poisoning.least_expectation(statement(0.0, delta=0.1), 0.9, rows=[1, 2]) == pytest.approx([0.8, 0.7])


def test_a_fitted_model_is_a_claim():
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (400, 2))
    schema = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", (0, 1)))
    model = lw.trainers.DPXGBoostClassifier(epsilon=1.0, schema=schema, n_estimators=2, max_depth=2)
    model.fit(X, (X[:, 0] > 0.5).astype(int))
    by_statement = poisoning.least_expectation(model.privacy_, 0.9, rows=[1, 3])
    by_plan = poisoning.least_expectation(model.plan_.event, 0.9, rows=[1, 3])
    assert (by_plan >= by_statement * (1.0 - 1e-9)).all()
    assert by_statement[0] >= 1.0 - math.e * 0.1 - 1e-9


def test_results_are_plain_values_in_the_order_of_the_rows():
    budget = lw.Budget(epsilon=0.1, delta=0.0, adjacency=A)
    found = poisoning.guaranteed_accuracy(GOOD, budget, rows=[5, 0, 1], alpha=0.1)
    assert found.rows == (5, 0, 1)
    assert (found.runs, found.alpha, found.change) == (5, 0.1, "add-remove")
    assert found.routes == ("stated", "clean", "stated")
    assert found.guaranteed[1] == found.clean_lower == lower_mean(np.array(GOOD), 0.1)
    assert found.estimated[1] == found.clean == pytest.approx(0.98)
    assert found == poisoning.guaranteed_accuracy(GOOD, budget, rows=[5, 0, 1], alpha=0.1)
    backdoor = poisoning.backdoor_bound([0.02, 0.01], budget, rows=np.array([0, 2]))
    assert backdoor.clean_upper == backdoor.guaranteed[0] < backdoor.guaranteed[1] < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": -1}, "rows"),
        ({"rows": 1.0}, "rows"),
        ({"rows": 10**6 + 1}, "rows"),
        ({"rows": 600_000, "change": "replace"}, "rows"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"change": "insert"}, "change"),
        ({"accuracies": []}, "accuracies"),
        ({"accuracies": 0.5}, "accuracies"),
        ({"accuracies": [1.1]}, "accuracies"),
        ({"accuracies": [math.nan]}, "accuracies"),
        ({"accuracies": [True]}, "accuracies"),
        ({"claim": 0.1}, "claim"),
        ({"claim": statement(1.0, certified=False)}, "certified"),
    ],
)
def test_bad_input_is_named_with_its_bound(arguments, message):
    given = {"accuracies": [0.9], "claim": lw.Budget(epsilon=1.0, delta=0.0, adjacency=A), "rows": 1, **arguments}
    with pytest.raises(InvalidParameter, match=message):
        poisoning.guaranteed_accuracy(given.pop("accuracies"), given.pop("claim"), **given)


@pytest.mark.parametrize("expectation", [-0.1, 1.5, math.nan, "much"])
def test_an_expectation_is_a_fraction(expectation):
    with pytest.raises(InvalidParameter, match="expectation"):
        poisoning.least_expectation(lw.Budget(epsilon=1.0, delta=0.0, adjacency=A), expectation, rows=1)


@pytest.mark.parametrize("adjacency", [R, Z])
def test_claims_of_replaced_rows_say_nothing_of_added_ones(adjacency):
    with pytest.raises(AdjacencyMismatch, match="replace"):
        poisoning.least_expectation(lw.Budget(epsilon=1.0, delta=0.0, adjacency=adjacency), 0.9, rows=1)


# -------------------------------------------------------------------------------------------------------- confidence


@pytest.mark.parametrize("mean", [0.03, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("runs", [1, 2, 10, 50])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
def test_coins_are_missed_with_probability_alpha_at_most(mean, runs, alpha):
    """Exact: the binomial probability of all counts whose bound is above the mean."""
    counts = np.arange(runs + 1)
    bounds = [lower_mean((np.arange(runs) < count).astype(float), alpha) for count in counts]
    missed = [count for count, bound in zip(counts, bounds, strict=True) if bound > mean]
    assert stats.binom.pmf(missed, runs, mean).sum() <= alpha


@pytest.mark.parametrize("values", [(0.0, 0.9), (0.5, 1.0), (0.01, 0.99), (0.9, 1.0)])
def test_two_values_are_missed_with_probability_alpha_at_most(values):
    """Exact: a number of runs has the higher value, and the geometric mean is put to work, too."""
    alpha, runs = 0.1, 12
    for high in (0.05, 0.3, 0.7, 0.95):
        mean = values[0] * (1.0 - high) + values[1] * high
        counts = np.arange(runs + 1)
        bounds = [lower_mean(np.where(np.arange(runs) < count, values[1], values[0]), alpha) for count in counts]
        missed = [count for count, bound in zip(counts, bounds, strict=True) if bound > mean]
        assert stats.binom.pmf(missed, runs, high).sum() <= alpha


def test_uneven_runs_are_missed_with_probability_alpha_at_most():
    """Independent fits need not have one law: each split its own; 2,000 studies of 20 fits."""
    generator = np.random.default_rng(0)
    means = np.linspace(0.3, 0.9, 20)
    studies = generator.beta(0.5 * means, 0.5 * (1.0 - means), (2_000, 20))
    missed = np.mean([lower_mean(study, 0.2) > means.mean() for study in studies])
    assert missed <= 0.2


def test_like_runs_have_nearly_the_best_bound_that_any_laws_allow():
    """No bound of n runs can be above (alpha)^(1/n): such coins show only ones that often."""
    ones = np.ones(50)
    assert lower_mean(ones, 0.05) <= 0.05 ** (1 / 50)
    assert lower_mean(ones, 0.05) == pytest.approx(0.025 ** (1 / 50), rel=1e-9)
    like = np.full(50, 0.98)
    hoeffding = 0.98 - math.sqrt(math.log(1 / 0.05) / 100)
    assert lower_mean(like, 0.05) == pytest.approx(0.98 * 0.025 ** (1 / 50), rel=1e-9)
    assert lower_mean(like, 0.05) > hoeffding + 0.08


@laws
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.floats(1e-6, 0.999))
def test_the_bound_is_below_the_mean_and_falls_with_alpha(values, alpha):
    given = np.array(values)
    bound = lower_mean(given, alpha)
    assert 0.0 <= bound <= given.mean() * (1 + 1e-15)
    assert lower_mean(given, alpha / 2.0) <= bound
