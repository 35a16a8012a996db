"""One run with canaries: the bound is the best possible one, by linear programming over all private channels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse, special, stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import guess_grid, one_run, one_run_p_value, one_run_scores


def best_attack(canaries, guesses, least, epsilon, delta):
    """The largest P(at least `least` right) over all (epsilon, delta)-private channels from coins to guesses.

    What a run releases may be replaced by the guesses that are made of it (post-processing), so that a channel is a
    table of coins x guesses, and privacy in each coin a set of linear inequalities.
    """
    coins = list(itertools.product((0, 1), repeat=canaries))
    answers = [y for y in itertools.product((-1, 0, 1), repeat=canaries) if sum(map(abs, y)) == guesses]
    row_of = {s: i for i, s in enumerate(coins)}
    pairs = [(row_of[s], row_of[(*s[:i], 1 - s[i], *s[i + 1 :])]) for s in coins for i in range(canaries)]
    width, table = len(answers), len(coins) * len(answers)
    limits = sparse.lil_matrix((len(pairs) * width + len(pairs), table + len(pairs) * width))
    bounds = np.zeros(limits.shape[0])
    for at, (one, other) in enumerate(pairs):
        for y in range(width):
            row = at * width + y
            limits[row, one * width + y] = 1.0
            limits[row, other * width + y] = -math.exp(epsilon)
            limits[row, table + row] = -1.0  # what is above e^epsilon times the other ...
        limits[len(pairs) * width + at, table + at * width : table + (at + 1) * width] = 1.0
        bounds[len(pairs) * width + at] = delta  # ... is delta in all
    whole = sparse.kron(sparse.eye(len(coins)), np.ones((1, width)))
    whole = sparse.hstack([whole, sparse.csr_matrix((len(coins), len(pairs) * width))])
    gains = np.zeros(limits.shape[1])
    for i, s in enumerate(coins):
        for j, y in enumerate(answers):
            right = sum((guess == 1) == (coin == 1) for guess, coin in zip(y, s, strict=True) if guess)
            gains[i * width + j] = -(right >= least) / len(coins)
    found = optimize.linprog(
        gains, A_ub=limits.tocsr(), b_ub=bounds, A_eq=whole.tocsr(), b_eq=np.ones(len(coins)), method="highs"
    )
    assert found.success
    return -found.fun


def published(correct, guesses, canaries, epsilon, delta):
    """Steinke, Nasr and Jagielski 2023, as the code in their Appendix D computes it."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    beta = stats.binom.sf(correct - 1, guesses, q)
    steps = np.arange(1, correct + 1)
    slope = ((stats.binom.sf(correct - 1 - steps, guesses, q) - beta) / steps).max()
    return min(1.0, beta + 2.0 * canaries * delta * slope)


@pytest.mark.slow_after(36)  # linear programs against the closed form
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1, 0.4])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
@pytest.mark.parametrize(
    ("canaries", "guesses", "least"),
    [(1, 1, 1), (2, 2, 2), (2, 2, 1), (2, 1, 1), (3, 3, 3), (3, 3, 2), (3, 2, 2), (3, 2, 1), (4, 4, 3)],
)
def test_no_channel_does_better_and_one_does_as_well(canaries, guesses, least, epsilon, delta):
    bound = one_run_p_value(least, guesses, canaries, epsilon=epsilon, delta=delta)
    assert bound == pytest.approx(best_attack(canaries, guesses, least, epsilon, delta), abs=3e-7)


CASES = st.integers(1, 2000).flatmap(
    lambda canaries: st.integers(1, canaries).flatmap(
        lambda guesses: st.tuples(st.integers(0, guesses), st.just(guesses), st.just(canaries))
    )
)
EPSILONS, DELTAS = st.floats(0.0, 12.0), st.sampled_from([0.0, 1e-12, 1e-6, 1e-4, 0.01, 0.5])


@given(CASES, EPSILONS, DELTAS)
def test_it_is_never_above_the_published_bound_that_refuses(case, epsilon, delta):
    found = one_run_p_value(*case, epsilon=epsilon, delta=delta)
    assert 0.0 <= found <= 1.0
    if case[0] and (printed := published(*case, epsilon, delta)) <= 0.5:
        assert found <= printed * (1 + 3e-7) + 1e-300


def test_the_published_bound_is_too_small_where_nobody_looks():
    """Above .9 a channel exceeds it: found by the program; no audit at a level below one half is touched."""
    case = (1, 2, 2)
    attained = best_attack(2, 2, 1, 1.0, 0.01)
    assert published(*case, 1.0, 0.01) < attained - 5e-4 < one_run_p_value(*case, epsilon=1.0, delta=0.01)


@given(CASES, EPSILONS, DELTAS)
def test_it_grows_with_epsilon_delta_and_canaries_and_falls_with_right_guesses(case, epsilon, delta):
    correct, guesses, canaries = case
    found = one_run_p_value(*case, epsilon=epsilon, delta=delta)
    room = 1.0 + 1e-6
    assert one_run_p_value(*case, epsilon=epsilon + 0.1, delta=delta) * room >= found
    assert one_run_p_value(*case, epsilon=epsilon, delta=min(2 * delta, 0.9)) * room >= found
    assert one_run_p_value(correct, guesses, canaries + 1, epsilon=epsilon, delta=delta) * room >= found
    if correct < guesses:
        assert one_run_p_value(correct + 1, guesses, canaries, epsilon=epsilon, delta=delta) <= found * room


@pytest.mark.parametrize(("alpha", "delta"), [(0.05, 0.0), (0.05, 1e-3), (1e-3, 1e-5)])
@pytest.mark.parametrize("epsilon", [0.0, 0.8, 2.5])
def test_it_errs_at_most_so_often_by_enumeration(epsilon, alpha, delta):
    """Randomised response on each coin is the worst pure channel; with probability delta a canary is revealed."""
    canaries, guesses = 40, 25
    q = 1.0 / (1.0 + math.exp(-epsilon))
    right = delta + (1.0 - delta) * q
    bounds = np.array([one_run(k, guesses, canaries, delta=delta, alpha=alpha) for k in range(guesses + 1)])
    assert stats.binom.pmf(range(guesses + 1), guesses, right)[bounds > epsilon].sum() <= alpha


def test_the_bound_is_where_the_p_value_crosses_alpha():
    for correct, guesses, canaries, delta in ((80, 100, 1000, 1e-5), (900, 1000, 1000, 0.0), (30, 30, 30, 1e-4)):
        found = one_run(correct, guesses, canaries, delta=delta, alpha=0.05)
        assert one_run_p_value(correct, guesses, canaries, epsilon=found, delta=delta) <= 0.05 * (1 + 2e-7)
        assert one_run_p_value(correct, guesses, canaries, epsilon=found + 1e-6, delta=delta) > 0.05


def test_tails_that_are_no_numbers_of_float64_are_bounded():
    found = one_run_p_value(100_000, 100_000, 100_000, epsilon=0.01, delta=1e-9)
    assert 0.0 < found <= 1e-4 * 1.1  # at most canaries delta t, t at most 1 / (correct (1 - 0))
    assert one_run_p_value(99_000, 100_000, 100_000, epsilon=0.01, delta=0.0) == 0.0


def test_the_grid_halves_and_is_fixed_by_the_number_of_canaries():
    assert guess_grid(1000) == ((500, 500), (250, 250), (125, 125), (62, 62), (31, 31), (15, 15), (7, 7))
    assert guess_grid(2) == ((1, 1),)
    with pytest.raises(InvalidParameter, match="canaries"):
        guess_grid(1)


def draws(epsilon, canaries, rng):
    """Scores of randomised response with a loss that differs by canary: every likelihood ratio is within e^epsilon."""
    coins = rng.integers(0, 2, canaries).astype(bool)
    strength = rng.uniform(0.0, 1.0, canaries) * epsilon
    kept = rng.random(canaries) < special.expit(strength)
    return np.where(kept == coins, strength, -strength), coins


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_scores_with_the_best_pair_of_the_grid_err_at_most_so_often():
    """400 runs at the truth: the error rate's standard error is .011 at .05, and 3 of them are .033."""
    rng = np.random.default_rng(20_260_701)
    wrong = [one_run_scores(*draws(1.0, 200, rng), delta=0.0, alpha=0.05).value > 1.0 for _ in range(400)]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_scores_show_most_of_a_large_leak():
    rng = np.random.default_rng(20_260_702)
    coins = rng.integers(0, 2, 2000).astype(bool)
    found = one_run_scores(coins + rng.normal(0.0, 0.3, 2000), coins, delta=1e-6, alpha=0.05)
    assert found.value > 3.0
    assert (found.assumption, found.samples, found.alpha, found.statistic) == ("none", 2000, 0.05, "one run")
    assert "highest scores were included" in found.event
    one = one_run_scores(coins.astype(float), coins, delta=0.0, alpha=0.05, grid=[(100, 0)])
    assert one.value == pytest.approx(math.log(0.05 ** (1 / 100) / (1 - 0.05 ** (1 / 100))))


def test_infinite_scores_are_scores():
    coins = np.array([True] * 10 + [False] * 10)
    scores = np.where(coins, np.inf, -np.inf)
    assert one_run_scores(scores, coins, delta=0.0, alpha=0.05).value > 0.0


@pytest.mark.parametrize(
    ("scores", "included", "grid", "said"),
    [
        ([1.0, 2.0], [True], None, "2 scores for 1 coins"),
        ([1.0, math.nan], [True, False], None, "NaN"),
        ([[1.0], [2.0]], [True, False], None, "shape"),
        (["a", "b"], [True, False], None, "numbers"),
        (np.zeros(30), np.full(30, 2), None, "truth values"),
        (np.zeros(30), np.full(30, 0.5), None, "truth values"),
        (np.zeros(30), np.zeros(30, bool), [(20, 20)], "30 guesses"),
        (np.zeros(30), np.zeros(30, bool), [(0, 0)], "30 guesses"),
        (np.zeros(30), np.zeros(30, bool), [], "at least one"),
        (np.zeros(30), np.zeros(30, bool), [(-1, 3)], "whole number"),
        (np.zeros(4), np.zeros(4, bool), None, "at least 5 guesses"),
    ],
)
def test_what_is_no_row_of_canaries_is_refused(scores, included, grid, said):
    with pytest.raises(InvalidParameter, match=said):
        one_run_scores(scores, included, delta=0.0, alpha=0.05, grid=grid)


def test_canaries_that_come_sorted_by_their_coins_tell_nothing_by_their_place():
    """Equal scores: by position, all of 200 guesses would be right in one of these orders, and wrong in the other."""
    for included in (np.arange(200) < 100, np.arange(200) >= 100):
        assert one_run_scores(np.zeros(200), included, delta=0.0, alpha=0.05).value == 0.0
