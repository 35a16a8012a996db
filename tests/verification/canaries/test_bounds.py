import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ledgerwood.verification.canaries.bounds import gaussian_bound, guess, looks_gaussian, mu_from_scores


@pytest.mark.slow  # a rate of error needs many audits
@pytest.mark.parametrize(("mu", "spread", "size"), [(0.0, 1.0, 8), (0.9, 1.0, 25), (2.0, 0.3, 25)])
def test_mu_is_above_the_truth_no_more_often_than_alpha(mu: float, spread: float, size: int) -> None:
    """3000 audits at alpha .05: within 3.5 standard errors of sqrt(.05 * .95 / 3000) = .004; the bound is exact."""
    rng = np.random.default_rng(20_264)
    above = 0
    for _ in range(3000):
        bound = mu_from_scores(
            spread * (mu + rng.standard_normal(size)), spread * rng.standard_normal(size + 3), alpha=0.05
        )
        above += bound > mu
    assert above / 3000 <= 0.05 + 3.5 * 0.004
    if mu > 0.0:
        assert above / 3000 >= 0.05 - 3.5 * 0.004


@pytest.mark.slow  # many fits
@pytest.mark.parametrize(("mu", "size"), [(150.0, 10), (30.0, 200)])
def test_mu_of_hardly_any_noise_is_above_the_truth_no_more_often_than_alpha(mu: float, size: int) -> None:
    """The simpler bound of large statistics: 2000 audits, 3.5 standard errors of sqrt(.05 * .95 / 2000) = .0049."""
    rng = np.random.default_rng(20_270)
    bounds = [
        mu_from_scores(mu + rng.standard_normal(size), rng.standard_normal(size), alpha=0.05) for _ in range(2000)
    ]
    assert np.mean(np.array(bounds) > mu) <= 0.05 + 3.5 * 0.0049
    assert min(bounds) > 0.3 * mu


@pytest.mark.parametrize("size", [2, 5, 1000, 10_000])
@pytest.mark.parametrize("mu", [1e2, 1e4, 1e6, 1e9, 1e13, 1e300])
def test_a_model_without_noise_has_a_bound_and_no_error(mu: float, size: int) -> None:
    rng = np.random.default_rng(20_271)
    found = mu_from_scores(mu + rng.standard_normal(size), rng.standard_normal(size), alpha=0.05)
    assert not math.isnan(found)
    assert found > (0.3 * mu if size > 2 else 0.0)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_the_bound_is_what_the_noncentral_law_refuses(alpha: float) -> None:
    """By the law's own integral, over the spread."""
    rng = np.random.default_rng(20_272)
    first, second = 1.5 + rng.standard_normal(30), rng.standard_normal(20)
    found = mu_from_scores(first, second, alpha=alpha)
    statistic = float(stats.ttest_ind(first, second).statistic)
    shift = found / math.sqrt(1 / 30 + 1 / 20)
    share = np.linspace(5e-6, 1.0 - 5e-6, 100_000)
    refused = stats.norm.sf(statistic * np.sqrt(stats.chi2.ppf(share, 48) / 48) - shift).mean()
    assert refused == pytest.approx(alpha, rel=2e-3) or (found == 0.0 and refused > alpha)


def test_noise_that_is_half_of_what_is_claimed_shows_in_mu() -> None:
    """True mu 1.85, standard error sqrt((4 + 1.7) / 2000) = .053."""
    rng = np.random.default_rng(20_265)
    found = mu_from_scores(0.925 + 0.5 * rng.standard_normal(1000), 0.5 * rng.standard_normal(1000), alpha=0.05)
    assert found == pytest.approx(1.85 - 1.645 * 0.053, abs=3.5 * 0.053)


def test_few_or_equal_scores_show_nothing_or_everything() -> None:
    two = np.array([1.0, 1.0])
    assert mu_from_scores(np.array([5.0]), two, alpha=0.05) == 0.0
    assert mu_from_scores(two, two, alpha=0.05) == 0.0
    assert mu_from_scores(two, 0.0 * two, alpha=0.05) == math.inf
    assert gaussian_bound(two, 0.0 * two, delta=1e-5, alpha=0.05).value == math.inf
    assert mu_from_scores(0.0 * two, two, alpha=0.05) == 0.0


def test_the_bound_says_that_noise_is_assumed_gaussian() -> None:
    rng = np.random.default_rng(20_266)
    bound = gaussian_bound(1.0 + rng.standard_normal(50), rng.standard_normal(60), delta=1e-5, alpha=0.01)
    assert (bound.assumption, bound.samples, bound.alpha, bound.delta) == ("Gaussian noise", 110, 0.01, 1e-5)


@pytest.mark.parametrize("size", [10, 100, 4000])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_gaussian_scores_look_gaussian_at_every_shift_and_spread(size: int, spread: float) -> None:
    """Forty audits; the rule refuses one right noise in 10^5."""
    rng = np.random.default_rng(20_273)
    for shift in (0.0, 1.0, 30.0, 1e4):
        for _ in range(10):
            with_canary = spread * (shift + rng.standard_normal(size))
            assert looks_gaussian(with_canary, spread * rng.standard_normal(size + 3))


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, size: rng.laplace(size=size),
        lambda rng, size: rng.uniform(size=size),
        lambda rng, size: rng.integers(0, 2, size).astype(float),
        lambda rng, size: rng.standard_cauchy(size=size),
        lambda rng, size: np.where(rng.random(size) < 0.02, 20.0, 1.0) * rng.standard_normal(size),
        lambda rng, size: np.zeros(size),
        lambda rng, size: 1e-12 * rng.standard_normal(size),
    ],
    ids=["Laplace", "uniform", "coins", "Cauchy", "outliers", "none", "rounding"],
)
def test_scores_of_other_noise_and_of_none_do_not_look_gaussian(noise: Any) -> None:
    """What is left over where canaries are in and where they are out is looked at, not the shift between them."""
    rng = np.random.default_rng(20_274)
    for shift in (1.0, 30.0):
        assert not looks_gaussian(shift + noise(rng, 1000), noise(rng, 1000))


def test_few_residuals_pass_only_if_they_vary() -> None:
    assert looks_gaussian(np.array([1.0, 2.0]), np.array([0.0]))
    assert not looks_gaussian(np.array([1.0, 1.0]), np.array([0.0]))


def test_guesses_take_the_highest_and_the_lowest() -> None:
    scores, coins = np.arange(10.0), np.arange(10) >= 4
    found = guess(scores, coins, included=3, left_out=5, generator=np.random.default_rng(0))
    assert (found.correct, found.made, found.canaries) == (3 + 4, 8, 10)
    none = guess(scores, coins, included=2, left_out=0, generator=np.random.default_rng(0))
    assert (none.correct, none.made) == (2, 2)


def test_ties_are_broken_by_chance_and_not_by_place() -> None:
    """Equal scores, and the canaries that are in stand first: right guesses are hypergeometric, mean 5 of 10.

    500 draws: standard error of the mean below sqrt(2.5 / 500) = .071.
    """
    rng = np.random.default_rng(20_267)
    coins = np.arange(100) < 50
    right = [
        guess(np.zeros(100), coins, included=10, left_out=0, generator=rng).correct for _ in range(500)
    ]  # fmt: skip
    assert float(np.mean(right)) == pytest.approx(5.0, abs=4 * 0.071)
    assert stats.tstd(right) > 1.0
