"""Rules of published auditors that accuse what is right, each beside ours on the same draws or the same sum.

Seeds were fixed before a result was seen. Margins are three standard errors, sqrt(a (1 - a) / n).
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import (
    LowerBound,
    Scores,
    combine_dependent,
    epsilon_of,
    expected_epsilon,
    mu_from_counts,
    one_run,
    one_run_scores,
    randomised_labels,
    roc_band,
)


def room(alpha, audits):
    return alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / audits)


def test_a_margin_that_does_not_depend_on_alpha_is_too_small():
    """Delta-Siege: sqrt(log(min(2, 1/alpha)) / 2n), where max is meant: .0059 at 10^4 runs whatever alpha is."""
    rng = np.random.default_rng(20_260_711)
    runs, audits, alpha = 10_000, 300, 0.05
    theirs = math.sqrt(math.log(min(2.0, 1.0 / alpha)) / 2.0 / runs)
    ranks = np.arange(1, runs + 1) / runs
    excess = np.array([np.max(ranks - np.sort(rng.random(runs))) for _ in range(audits)])
    assert np.mean(excess > theirs) > 0.4  # nominal .025 on one side
    ours = math.sqrt(math.log(2.0 / (alpha / 2.0)) / (2.0 * runs))
    assert np.mean(excess > ours) <= room(alpha / 4.0, audits)
    band = roc_band(Scores(rng.random(runs), rng.random(runs)), alpha=alpha, band="dkw")
    inside = (band.right_lower > 0.0) & (band.right_upper < 1.0)
    assert band.right_upper[inside] - band.right_alarms[inside] == pytest.approx(ours, rel=1e-6)


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_the_best_of_many_numbers_of_guesses_is_not_valid_uncorrected():
    """ml_privacy_meter: the largest epsilon over pairs (k-, k+), each at level .05. 400 canaries without any effect."""
    rng = np.random.default_rng(20_260_712)
    canaries, audits, alpha = 400, 200, 0.05
    sizes = np.arange(5, canaries // 2 + 1, 5)
    theirs = ours = 0
    for _ in range(audits):
        coins = rng.integers(0, 2, canaries).astype(bool)
        order = np.argsort(rng.random(canaries))
        right = np.cumsum(coins[order[::-1]])[sizes - 1] + np.cumsum(~coins[order])[sizes - 1]
        # epsilon > .01 is shown by a pair whose p-value at .01 is below alpha
        theirs += bool(np.any(stats.binom.sf(right - 1, 2 * sizes, special.expit(0.01)) < alpha))
        scores = np.empty(canaries)
        scores[order] = np.arange(canaries)
        ours += one_run_scores(scores, coins, delta=0.0, alpha=alpha).value > 0.01
    assert theirs / audits > room(alpha, audits)
    assert ours / audits <= room(alpha, audits)


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_intervals_for_one_threshold_do_not_hold_at_all_of_them():
    """privacy-estimates: the largest lower limit over all thresholds of a ROC, of pointwise (Jeffreys) intervals."""
    rng = np.random.default_rng(20_260_713)
    runs, audits, alpha = 500, 300, 0.05
    theirs = ours = 0
    for _ in range(audits):
        one, other = np.sort(rng.random(runs)), np.sort(rng.random(runs))
        thresholds = np.concatenate([one, other])
        k1 = runs - np.searchsorted(one, thresholds, side="right")
        k2 = runs - np.searchsorted(other, thresholds, side="right")
        low = special.betaincinv(k1 + 0.5, runs - k1 + 0.5, alpha / 2.0)
        high = special.betainccinv(k2 + 0.5, runs - k2 + 0.5, alpha / 2.0)
        theirs += bool(np.any((low > high) & (k1 > 0) & (k2 < runs)))
        ours += roc_band(Scores(one, other), alpha=alpha).epsilon(0.0) > 0.0
    assert theirs / audits > room(alpha, audits)
    assert ours / audits <= room(alpha, audits)


def test_a_gaussian_bound_of_laplace_noise_is_wrong_and_says_what_it_assumes():
    """jax_privacy: `epsilon_from_gdp` says 4.4 of a Laplace mechanism with epsilon 1, without a word."""
    runs, epsilon = 100_000, 1.0
    wrong = []
    for threshold in (0.5, 2.0, 4.0):
        right, false = (stats.laplace.sf(threshold, loc=loc) for loc in (epsilon, 0.0))
        mu = mu_from_counts(round(right * runs), runs, round(false * runs), runs, alpha=0.05)
        wrong.append(epsilon_of(mu, 1e-5))
    assert max(wrong) > 4.0
    fields = {"value": max(wrong), "delta": 1e-5, "alpha": 0.05, "event": "a threshold", "samples": runs}
    for assumption in ("none", "large counts"):
        with pytest.raises(InvalidParameter, match="Gaussian noise"):
            LowerBound(**fields, assumption=assumption, statistic="Gaussian median")
    assert "assuming Gaussian noise" in str(
        LowerBound(**fields, assumption="Gaussian noise", statistic="Gaussian median")
    )


def test_a_fixed_number_of_included_canaries_is_no_coin_by_enumeration():
    """jax_privacy takes n_in and n_out as given. Of 2 canaries with one included, at epsilon 0, both guesses are right
    half of the time; of 10 with five included, each hit among five "in" is one among five "out" too."""
    alpha = 0.06
    bounds = np.array([one_run(k, 10, 10, delta=0.0, alpha=alpha) for k in range(11)])
    coins = stats.binom.pmf(range(11), 10, 0.5)[bounds > 0.0].sum()
    assert coins <= alpha
    fixed = sum(
        stats.hypergeom.pmf(hits, 10, 5, 5) for hits in range(6) if bounds[2 * hits] > 0.0
    )  # 5 guesses "in" with so many hits leave as many right guesses "out"
    assert fixed > 1.5 * alpha
    assert one_run(2, 2, 2, delta=0.0, alpha=0.3) > 0.0  # P(both right) = 1/4 with coins, 1/2 with one of two


def test_guesses_of_both_kinds_show_more_than_of_one():
    one_kind = one_run(132, 150, 1000, delta=1e-5, alpha=0.05)
    assert one_run(264, 300, 1000, delta=1e-5, alpha=0.05) > one_kind + 0.1


def test_both_directions_at_full_level_err_twice_by_enumeration():
    """dp_auditorium does not divide its failure probability by directions and trials. p = q = 1/2, 400 runs."""
    inside, alpha = 200, 0.05
    chances = stats.binom.pmf(range(inside + 1), inside, 0.5)

    def larger(level):
        return np.array(
            [
                max(
                    randomised_labels(*pair, 400, delta=0.0, alpha=level) for pair in ((k, inside - k), (inside - k, k))
                )
                for k in range(inside + 1)
            ]
        )

    assert chances[larger(alpha) > 0.0].sum() > 1.5 * alpha
    assert chances[larger(alpha / 2.0) > 0.0].sum() <= alpha


def test_an_event_of_fixed_probability_caps_what_is_shown():
    """DP-Sniper's event has probability .01 without the row, whatever the number of runs: on Gaussian noise it stays
    where it is; an event chosen for the bound does not."""
    mu = 1.0

    def shown(runs, rate):
        right = stats.norm.sf(stats.norm.isf(rate) - mu)
        return expected_epsilon(runs, with_row=right, without=rate, delta=0.0, alpha=0.05)

    limit = math.log(stats.norm.sf(stats.norm.isf(0.01) - mu) / 0.01)
    for runs in (10**6, 10**8):
        best = max(shown(runs, rate) for rate in np.geomspace(1e-7, 0.3, 40))
        assert shown(runs, 0.01) < limit < best
    assert shown(10**8, 1e-5) > limit + 1.0


def test_averaged_p_values_are_no_p_value_and_averaged_e_values_are_an_e_value():
    """StatDP averages p-values over random thinnings. Two uniform ones whose mean is below alpha twice as often."""
    alpha = 0.05
    first = (np.arange(1_000_000) + 0.5) / 1_000_000
    second = np.where(first <= 2.0 * alpha, 2.0 * alpha - first, first)
    for p_values in (first, second):
        assert np.quantile(p_values, [0.02, 0.5, 0.9]) == pytest.approx([0.02, 0.5, 0.9], abs=1e-4)
    assert np.mean((first + second) / 2.0 <= alpha + 1e-9) == pytest.approx(2.0 * alpha, abs=1e-4)
    e_values = [0.5 / np.sqrt(p) for p in (first, second)]  # of mean 1 under uniform p
    mean = (e_values[0] + e_values[1]) / 2.0
    assert np.mean(mean) == pytest.approx(1.0, abs=2e-3)
    assert np.mean(mean >= 1.0 / alpha) <= alpha
    assert combine_dependent([math.log(e[0]) for e in e_values]) == pytest.approx(math.log(mean[0]))
