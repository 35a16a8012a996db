"""Inverted moments against closed forms, references and direct sums; refusals where they would be wrong."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BoundedRangeEvent,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
    gdp,
    mgf,
    price,
)
from ledgerwood.accounting.losses import plans
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


def inverted(event, delta):
    return mgf.epsilon(mgf.plan(event), math.log(delta))


@settings(max_examples=60, deadline=None)
@given(st.floats(0.1, 50.0), st.integers(1, 10**6), st.sampled_from([1e-2, 1e-5, 1e-9, 1e-12, 1e-30, 1e-100]))
def test_gaussian_compositions_are_the_closed_form(multiplier, count, delta):
    exact = gdp.epsilon(math.sqrt(count) / multiplier, delta)
    found = inverted(Repeated(gaussian(multiplier), count=count), delta)
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize(
    ("rate", "count", "multiplier", "delta", "reference"),
    [
        (0.01, 10**4, 0.5674, 1e-5, 27.745396),
        (0.01, 10**4, 1.0, 1e-5, 6.187712),
        (0.01, 10**4, 4.0, 1e-5, 0.946867),
        (256 / 60000, 14040, 1.1, 1e-5, 2.379555),
        (0.001, 10**6, 1.0, 1e-5, 6.026131),
        (0.001, 10**6, 2.0, 1e-6, 2.420858),
        (0.5, 100, 20.0, 1e-5, 0.931048),
        (0.1, 1000, 10.0, 1e-5, 1.208946),
        (0.9, 100, 50.0, 1e-5, 0.646862),
        (1e-4, 10**7, 1.0, 1e-6, 1.838200),
        (1e-4, 10**8, 1.0, 1e-6, 6.671931),
    ],
)
def test_sampled_gaussian_plans_meet_the_references(rate, count, multiplier, delta, reference):
    """References of six decimals, by an implementation of its own."""
    found = inverted(Repeated(sampled(gaussian(multiplier), rate), count=count), delta)
    assert found == pytest.approx(reference, rel=1e-6, abs=6e-7)


@pytest.mark.parametrize(
    ("rate", "multiplier", "count"),
    [(0.001, 0.6, 100), (0.004, 0.6, 100), (0.01, 1.0, 1), (1e-6, 1.0, 10**5)],
)
def test_few_hits_and_single_draws_are_refused(rate, multiplier, count):
    """An inversion that does not look at the end of its line is off by 5e-4 here."""
    event = Repeated(sampled(gaussian(multiplier), rate), count=count)
    with pytest.raises(UnsupportedEvent, match="'mgf' would .* use method 'pld'"):
        inverted(event, 1e-5)
    with pytest.raises(UnsupportedEvent, match="use method 'pld'"):
        price(event, method="mgf").delta(1.0)


PLANS = [
    Composed((
        Repeated(gaussian(5.0), count=10),
        Repeated(laplace(10.0), count=10),
        Repeated(sampled(gaussian(1.0), 0.01), count=1000),
    )),
    Repeated(laplace(100.0), count=10_000),
    Repeated(sampled(laplace(1.0), 0.01), count=10_000),
    Repeated(sampled(laplace(1.0), 0.5), count=300),
    Composed((Repeated(pure(0.1), count=100), Repeated(sampled(pure(0.5), 0.2), count=50), gaussian(0.7))),
    Repeated(Parallel((laplace(2.0), gaussian(1.5)), probabilities=(0.3, 0.4)), count=200),
    Repeated(sampled(Composed((gaussian(3.0), gaussian(3.0))), 0.1), count=50),
    Repeated(sampled(sampled(gaussian(1.0), 0.1), 0.1), count=10_000),
]  # fmt: skip


# The two atoms of a sampled response do not share a lattice with those of the others: a wider interval.
WIDTHS = [2e-3 if plan is PLANS[4] else 1e-3 for plan in PLANS]


@pytest.mark.parametrize(("event", "width"), list(zip(PLANS, WIDTHS, strict=True)))
def test_mixed_plans_lie_between_the_composed_losses(event, width):
    delta = 1e-6
    low, high = plans.interval(plans.plan(event), math.log(delta))
    assert low - 1e-9 <= inverted(event, delta) <= high + 1e-9
    assert high - low <= max(1e-4, width * high)


def test_a_randomised_response_beside_a_gaussian_is_a_sum_of_gaussians():
    """The law of the responses' losses is binomial; given it, the profile is the Gaussian one at a moved epsilon."""
    epsilon, count, mu, at = 0.1, 1000, 1.0, 20.0
    k = np.arange(count + 1)
    with mpmath.workdps(40):
        heavy = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        total = mpmath.mpf(0)
        for i in k.tolist():
            moved = mpmath.mpf(at) - mpmath.mpf(epsilon) * (2 * i - count)
            profile = mpmath.ncdf(mu / 2 - moved / mu) - mpmath.exp(moved) * mpmath.ncdf(-mu / 2 - moved / mu)
            total += mpmath.binomial(count, i) * heavy**i * (1 - heavy) ** (count - i) * profile
        exact = float(mpmath.log(total))
    event = Composed((Repeated(pure(epsilon), count=count), gaussian(1 / mu)))
    assert mgf.log_delta(mgf.plan(event), at) == pytest.approx(exact, abs=1e-9)
    replace = Adjacency.REPLACE_ONE
    moved = Composed((
        Repeated(RandomizedResponseEvent(epsilon=epsilon, categories=2, adjacency=replace), count=count),
        GaussianEvent(noise_multiplier=1 / mu, adjacency=replace),
    ))  # fmt: skip
    assert mgf.log_delta(mgf.plan(moved), at) == pytest.approx(exact, abs=1e-9)


def test_both_readings_of_the_curve_agree():
    priced = price(PLANS[0], method="mgf")
    for delta in (1e-3, 1e-6, 1e-12):
        epsilon = priced.epsilon(delta)
        assert priced.delta(epsilon) == pytest.approx(delta, rel=1e-7)


def test_a_price_is_an_estimate_and_never_the_tightest():
    event = Repeated(sampled(gaussian(1.0), 0.01), count=10_000)
    priced = price(event, method="mgf")
    quote = priced.quote(1e-5)
    assert (quote.method, quote.certified, priced.certified) == ("mgf", False, False)
    assert "an estimate, not a bound" in priced.explain()
    assert price(event).quote(1e-5).method != "mgf"
    low, high = priced.epsilon_interval(1e-5)
    assert low <= quote.epsilon <= high
    assert (low, high) == price(event).epsilon_interval(1e-5)


def test_where_delta_is_covered_at_once_epsilon_is_0():
    event = Repeated(sampled(gaussian(50.0), 0.01), count=100)
    assert inverted(event, 0.05) == 0.0


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Repeated(pure(0.1), count=1000), "needs a draw whose losses have a density"),
        (Repeated(BoundedRangeEvent(epsilon=0.1, adjacency=A), count=1000), "no complex moments"),
        (Composed((Repeated(pure(0.1), count=1000), laplace(1.0))), "falls too slowly"),
        (Composed(tuple(sampled(gaussian(1.0 + i / 100), 0.1) for i in range(65))), "at most 64"),
        (Repeated(sampled(Parallel.worst((laplace(1.0), pure(1.0))), 0.1), count=9), "no complex moments"),
    ],
)
def test_what_cannot_be_inverted_says_what_can(event, reason):
    with pytest.raises(UnsupportedEvent, match=reason):
        inverted(event, 1e-6)
