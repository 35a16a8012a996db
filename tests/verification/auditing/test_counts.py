"""Bounds from counts: errors added up over all outcomes, quantiles against 50 digits, laws."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import clopper_pearson, hockey_stick, randomised_labels
from ledgerwood.verification.auditing.counts import binomial_lower, binomial_upper, log_odds_from_below

ALPHAS = (0.3, 0.05, 1e-3)
TRUTHS = [(0.0, 0.0), (0.0, 0.1), (0.5, 0.0), (0.5, 0.02), (1.5, 0.0), (1.5, 0.2), (3.0, 0.001)]
RATES = (0.02, 0.1, 0.3, 0.5, 0.8)
"""Of the event without the row."""


def pairs(epsilon, delta):
    """Probabilities (p1, p2) on the edge of (epsilon, delta)."""
    return [(math.exp(epsilon) * p2 + delta, p2) for p2 in RATES if math.exp(epsilon) * p2 + delta <= 1.0] + [
        (1.0, (1.0 - delta) * math.exp(-epsilon))
    ]


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function at 50 digits by its continued fraction (DLMF 8.17.22)."""
    if x > mpmath.mpf(a) / (a + b):
        return 1 - incomplete_beta(b, a, 1 - x)
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    front = a * mpmath.log(x) + b * mpmath.log1p(-x) - mpmath.log(a)
    front -= mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    tiny = mpmath.mpf(10) ** -80
    c, d = mpmath.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
    value, m = d, 0
    while True:
        m += 1
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d or tiny), 1 + term / c or tiny
            value *= d * c
        if abs(d * c - 1) < mpmath.mpf(10) ** -30:
            return mpmath.exp(front) * value


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize(
    ("successes", "trials"),
    [(1, 1), (1, 10), (9, 10), (10, 10), (1, 10**9), (30, 10**9), (4_000, 9_000), (10**6 - 1, 10**6), (7, 10**7)],
)
def test_limits_of_binomials_are_on_the_right_side_and_near(successes, trials, alpha):
    with mpmath.workdps(50):
        low = mpmath.mpf(binomial_lower(successes, trials, alpha))
        # P(X >= successes) at the lower limit is at most alpha, and a little further in it is above.
        assert incomplete_beta(successes, trials - successes + 1, low) <= alpha
        room = mpmath.mpf("2.1e-7")
        inner = low * (1 + room)
        assert inner >= 1 or incomplete_beta(successes, trials - successes + 1, inner) > alpha
        if successes < trials:
            high = mpmath.mpf(binomial_upper(successes, trials, alpha))
            assert high == 1 or 1 - incomplete_beta(successes + 1, trials - successes, high) <= alpha
            assert 1 - incomplete_beta(successes + 1, trials - successes, high * (1 - room)) > alpha


def test_the_continued_fraction_is_the_integral():
    with mpmath.workdps(50):
        for a, b, x in ((3, 5, "0.2"), (40, 7, "0.9"), (1, 1, "0.3")):
            assert mpmath.almosteq(
                incomplete_beta(a, b, mpmath.mpf(x)), mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True), 1e-28
            )


@pytest.mark.parametrize("trials", [10**9, 3 * 10**6])
def test_quantiles_of_large_counts_agree_with_the_distribution(trials):
    """In the middle of large counts, where the continued fraction is slow: by scipy's own function."""
    for successes in (trials // 3, trials // 2, trials - 1000):
        for alpha in (0.05, 1e-12):
            low = binomial_lower(successes, trials, alpha)
            assert stats.beta.cdf(low, successes, trials - successes + 1) <= alpha


@pytest.mark.slow_after(6)  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("delta", sorted({delta for _, delta in TRUTHS}))
def test_clopper_pearson_errs_at_most_so_often_by_enumeration(alpha, delta):
    with_runs, without_runs = 14, 11
    bounds = np.array(
        [
            [clopper_pearson(k1, with_runs, k2, without_runs, delta=delta, alpha=alpha) for k2 in range(12)]
            for k1 in range(15)
        ]
    )
    for epsilon in {epsilon for epsilon, other in TRUTHS if other == delta}:
        for p1, p2 in pairs(epsilon, delta):
            chances = np.outer(stats.binom.pmf(range(15), with_runs, p1), stats.binom.pmf(range(12), without_runs, p2))
            assert chances[bounds > epsilon].sum() <= alpha


@pytest.mark.slow_after(5)  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("delta", sorted({delta for _, delta in TRUTHS}))
def test_randomised_labels_err_at_most_so_often_by_enumeration(alpha, delta):
    runs = 22
    outcomes = [(k1, k2) for k1 in range(runs + 1) for k2 in range(runs + 1 - k1)]
    bounds = np.array([randomised_labels(k1, k2, runs, delta=delta, alpha=alpha) for k1, k2 in outcomes])
    counts = np.array([(k1, k2, runs - k1 - k2) for k1, k2 in outcomes])
    for epsilon in {epsilon for epsilon, other in TRUTHS if other == delta}:
        for p1, p2 in pairs(epsilon, delta):
            chances = stats.multinomial.pmf(counts, runs, [p1 / 2, p2 / 2, max(0.0, 1 - p1 / 2 - p2 / 2)])
            assert chances[bounds > epsilon].sum() <= alpha


def test_randomised_labels_use_their_level_up():
    """With delta 0 the error at the truth is that of one binomial, not of two with half of the level each."""
    runs, p2, epsilon, alpha = 400, 0.3, 1.0, 0.05
    p1 = math.exp(epsilon) * p2
    share = p1 / (p1 + p2)
    wrong = np.array([log_odds_from_below(k, 250, alpha) > epsilon for k in range(251)])
    assert 0.6 * alpha < stats.binom.pmf(range(251), 250, share)[wrong].sum() <= alpha
    assert randomised_labels(200, 50, runs, delta=0.0, alpha=alpha) == log_odds_from_below(200, 250, alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_the_hockey_stick_errs_at_most_so_often_by_enumeration(alpha, epsilon):
    runs = 60
    bounds = np.array([hockey_stick(k, runs, epsilon=epsilon, alpha=alpha) for k in range(runs + 1)])
    for delta in (0.0, 0.01, 0.3, 1.0):
        right = (math.exp(epsilon) + delta) / (1.0 + math.exp(epsilon))
        assert stats.binom.pmf(range(runs + 1), runs, right)[bounds > delta].sum() <= alpha


def test_the_hockey_stick_of_an_event_is_what_its_guesses_earn():
    """The guessing game by its definition: P(right) = (e^epsilon + p1 - e^epsilon p2) / (1 + e^epsilon)."""
    epsilon, p1, p2 = 0.4, 0.6, 0.2
    with_row = 1.0 / (1.0 + math.exp(epsilon))
    right = with_row * p1 + (1.0 - with_row) * (1.0 - p2)
    runs = 10**12
    found = hockey_stick(round(right * runs), runs, epsilon=epsilon, alpha=0.05)
    assert found == pytest.approx(p1 - math.exp(epsilon) * p2, abs=1e-5)


COUNTS = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).flatmap(
    lambda runs: st.tuples(st.integers(0, runs[0]), st.just(runs[0]), st.integers(0, runs[1]), st.just(runs[1]))
)
LEVELS = st.floats(1e-9, 0.5)
DELTAS = st.sampled_from([0.0, 1e-9, 1e-5, 0.01, 0.3])


@pytest.mark.slow  # a rate of error, by enumeration or many audits
@given(COUNTS, LEVELS, DELTAS)
def test_more_evidence_never_lowers_a_bound(counts, alpha, delta):
    k1, n1, k2, n2 = counts
    room = 4e-7

    def both(k1, k2, delta, alpha):
        return np.array(
            [
                clopper_pearson(k1, n1, k2, n2, delta=delta, alpha=alpha),
                randomised_labels(k1, k2, n1 + n2, delta=delta, alpha=alpha),
            ]
        )

    found = both(k1, k2, delta, alpha)
    assert (found >= 0.0).all()
    assert np.isfinite(found).all()
    assert (both(min(k1 + 1, n1), k2, delta, alpha)[:1] >= found[:1] - room).all()
    assert (both(k1, max(k2 - 1, 0), 0.0, alpha) >= found - room).all()
    assert (both(k1, k2, delta, min(2.0 * alpha, 0.5)) >= found - room).all()
    assert (both(k1, k2, min(delta + 0.01, 0.9), alpha) <= found + room).all()
    # No more than one event in every run with the row and none without would give.
    assert (found <= both(n1, 0, 0.0, alpha) + room).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: clopper_pearson(3, 2, 0, 2, delta=0.0, alpha=0.05),
        lambda: clopper_pearson(1, 2, 0, 0, delta=0.0, alpha=0.05),
        lambda: clopper_pearson(1.5, 2, 0, 2, delta=0.0, alpha=0.05),
        lambda: clopper_pearson(1, 2, -1, 2, delta=0.0, alpha=0.05),
        lambda: clopper_pearson(1, 2, 1, 2, delta=1.0, alpha=0.05),
        lambda: clopper_pearson(1, 2, 1, 2, delta=0.0, alpha=0.6),
        lambda: randomised_labels(2, 1, 2, delta=0.0, alpha=0.05),
        lambda: randomised_labels(True, 1, 2, delta=0.0, alpha=0.05),
        lambda: hockey_stick(1, 2, epsilon=-1.0, alpha=0.05),
        lambda: hockey_stick(1, 2, epsilon=1.0, alpha=math.nan),
    ],
)
def test_counts_that_cannot_be_are_refused(call):
    with pytest.raises(InvalidParameter, match="unit: "):
        call()


def test_epsilons_beyond_all_doubles_show_nothing():
    assert hockey_stick(10, 10, epsilon=1000.0, alpha=0.05) == 0.0
