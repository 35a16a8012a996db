"""Bounds under Gaussian noise: coverage where it is Gaussian, laws, and epsilon from mu by its definition."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import epsilon_of, mu_from_counts, mu_from_means


@pytest.mark.slow_after(1)  # a rate of error, by enumeration or many audits
@pytest.mark.parametrize("mu", [0.0, 0.4, 1.5])
def test_one_threshold_errs_at_most_so_often_by_enumeration(mu):
    runs, alpha = 25, 0.1
    bounds = np.array(
        [[mu_from_counts(a, runs, b, runs, alpha=alpha) for b in range(runs + 1)] for a in range(runs + 1)]
    )
    for threshold in (-0.5, 0.3, mu / 2.0, 2.0):
        chances = np.outer(
            stats.binom.pmf(range(runs + 1), runs, stats.norm.sf(threshold - mu)),
            stats.binom.pmf(range(runs + 1), runs, stats.norm.sf(threshold)),
        )
        assert chances[bounds > mu].sum() <= alpha


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_means_err_exactly_so_often():
    """The law of the difference of means is normal: the error is alpha itself. 5000 draws, three standard errors."""
    rng = np.random.default_rng(20_260_741)
    mu, n, m, alpha = 0.7, 30, 50, 0.05
    ones, others = rng.normal(mu, n**-0.5, 5_000), rng.normal(0.0, m**-0.5, 5_000)
    wrong = [mu_from_means(a, n, b, m, alpha=alpha) > mu for a, b in zip(ones, others, strict=True)]
    assert abs(np.mean(wrong) - alpha) <= 3 * math.sqrt(alpha * (1 - alpha) / 5_000)


@pytest.mark.parametrize(("mu", "delta"), [(0.2681, 1e-5), (1.0, 1e-5), (3.0, 1e-9), (0.5, 0.1)])
def test_epsilon_of_mu_is_rounded_down(mu, delta):
    def missing(epsilon):
        return (
            stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta
        )

    root = optimize.brentq(missing, 0.0, 60.0, xtol=1e-14)
    assert epsilon_of(mu, delta) <= root
    assert epsilon_of(mu, delta) == pytest.approx(root, rel=1e-6)


def test_nothing_shown_is_zero():
    assert mu_from_counts(0, 10, 10, 10, alpha=0.05) == 0.0
    assert mu_from_counts(10, 10, 10, 10, alpha=0.05) == 0.0
    assert mu_from_means(0.0, 10, 1.0, 10, alpha=0.05) == 0.0
    assert epsilon_of(0.0, 1e-5) == 0.0
    with pytest.raises(InvalidParameter, match="runs_with"):
        mu_from_means(0.0, 0, 1.0, 10, alpha=0.05)
    with pytest.raises(InvalidParameter, match="delta"):
        epsilon_of(1.0, 1.0)
