"""Composed privacy losses against closed forms, published brackets and direct integrals."""

import math
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import integrate

from ledgerwood.accounting import (
    Adjacency,
    Composed,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    price,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.costs.losses import dots as lines
from ledgerwood.accounting.costs.losses import joint, lattice, plans

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


def both(event, delta):
    found = plans.plan(event)
    return [plans.epsilon(found, math.log(delta), above=above) for above in (False, True)]


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=40, deadline=None)
@given(st.floats(0.02, 50.0), st.integers(2, 10**6), st.sampled_from([1e-3, 1e-5, 1e-9, 1e-12, 1e-30]))
def test_gaussian_compositions_enclose_the_closed_form(multiplier, count, delta):
    exact = gdp.epsilon(math.sqrt(count) / multiplier, delta)
    if exact > 200.0:
        return
    low, high = both(Repeated(gaussian(multiplier), count=count), delta)
    assert low <= exact <= high
    assert high - low <= max(1e-4, 1e-3 * exact)


@pytest.mark.slow_after(2)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(
    ("multiplier", "count", "delta"), [(0.7, 10**4, 1e-5), (5.0, 10**6, 1e-3), (0.5, 10**6, 1e-10), (2.0, 10**7, 1e-30)]
)
def test_very_large_prices_enclose_the_closed_form(multiplier, count, delta):
    exact = gdp.epsilon(math.sqrt(count) / multiplier, delta)
    assert exact > 5000.0
    low, high = plans.interval(plans.plan(Repeated(gaussian(multiplier), count=count)), math.log(delta))
    assert low <= exact <= high
    assert high - low <= 1e-3 * exact


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(
    ("rate", "count", "multiplier", "delta", "reference"),
    [
        (0.5, 10**6, 2.0, 1e-3, 32995.903836),
        (0.5, 3 * 10**5, 0.7, 1e-3, 93265.786027),
        (0.3, 10**7, 2.0, 1e-5, 121378.601993),
        (0.01, 10**4, 0.5674, 1e-5, 27.745396),
        (0.01, 10**4, 1.0, 1e-5, 6.187712),
        (0.01, 10**4, 4.0, 1e-5, 0.946867),
        (256 / 60000, 14040, 1.1, 1e-5, 2.379555),
        (0.01, 1, 1.0, 1e-5, 0.199450),
        (0.001, 10**6, 1.0, 1e-5, 6.026131),
        (0.001, 10**6, 2.0, 1e-6, 2.420858),
        (0.5, 100, 20.0, 1e-5, 0.931048),
        (0.1, 1000, 10.0, 1e-5, 1.208946),
        (0.9, 100, 50.0, 1e-5, 0.646862),
        (1e-4, 10**7, 1.0, 1e-6, 1.838200),
        (1e-4, 10**8, 1.0, 1e-6, 6.671931),
    ],
)
def test_sampled_gaussian_plans_enclose_the_inverted_moments(rate, count, multiplier, delta, reference):
    """References: inversion of the losses' moment generating function, six decimals."""
    low, high = plans.interval(plans.plan(Repeated(sampled(gaussian(multiplier), rate), count=count)), math.log(delta))
    assert low <= reference + 1e-6
    assert high >= reference - 1e-6
    assert high - low <= max(1e-4, 1e-3 * reference)


@pytest.mark.parametrize(
    ("event", "low", "high"),
    [
        (Repeated(laplace(10.0), count=100), 4.69245, 4.692672),
        (Repeated(laplace(20.0), count=1000), 8.20323, 8.20446),
        (Repeated(laplace(100.0), count=10_000), 4.87377, 4.87627),
        (Repeated(laplace(0.2), count=5), 24.999960, 24.999969),
        (Repeated(PureEvent(epsilon=0.1, adjacency=A), count=1000), 19.3446, 19.3448),
        (
            Composed(
                (
                    Repeated(gaussian(5.0), count=10),
                    Repeated(laplace(10.0), count=10),
                    Repeated(sampled(gaussian(1.0), 0.01), count=1000),
                )
            ),
            3.5163,
            3.5178,
        ),
    ],
)
def test_laplace_and_mixed_plans_agree_with_published_brackets(event, low, high):
    delta = 1e-5 if isinstance(event, Composed) else 1e-6
    found = plans.interval(plans.plan(event), math.log(delta))
    assert low <= found[0] <= found[1] <= high


@pytest.mark.parametrize(
    ("rate", "scale", "count", "epsilon", "low", "high"),
    [
        (0.9, 1.0, 2, 0.1, 0.3916821, 0.3916842),
        (0.9, 1.0, 2, 0.05, 0.4023284, 0.4023305),
        (0.5, 0.5, 3, 0.1, 0.477692, 0.477718),
    ],
)
def test_adding_dominates_removing_for_some_sampled_laplace_plans(rate, scale, count, epsilon, low, high):
    """The larger direction is taken after composition; the other one would be up to 4 % too small."""
    found = plans.plan(Repeated(sampled(laplace(scale), rate), count=count))
    below, above = (math.exp(plans.log_delta(found, epsilon, above=side)) for side in (False, True))
    assert below <= high
    assert above >= low
    assert above - below <= 2e-4


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_two_sampled_draws_agree_with_a_direct_integral():
    """delta_2(eps) = E_P[H(eps - L)], one draw integrated over its outputs, the other by its exact profile."""
    rate, multiplier = 0.2, 1.3
    event, mu = sampled(gaussian(multiplier), rate), 1.0 / multiplier

    def height(t):
        if t >= 0.0:
            return math.exp(float(event.log_profile([t], direction=Direction.REMOVE)[0]))
        back = math.exp(float(event.log_profile([-t], direction=Direction.ADD)[0]))
        return 1.0 - math.exp(t) + math.exp(t) * back

    def integrand(x, epsilon):
        ratio = 1.0 - rate + rate * math.exp(mu * x - mu * mu / 2.0)
        density = math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
        return density * ratio * height(epsilon - math.log(ratio))

    found = plans.plan(Repeated(event, count=2))
    for epsilon in (0.1, 0.5, 1.5):
        kink = (math.log((math.exp(epsilon) - 1.0 + rate) / rate) + mu * mu / 2.0) / mu
        exact = integrate.quad(integrand, -12, 14, args=(epsilon,), points=[kink], epsabs=1e-13, limit=300)[0]
        for fineness, width in ((64.0, 1e-2), (128.0, 2e-3)):
            low, high = (
                math.exp(plans.log_delta(found, epsilon, above=side, fineness=fineness)) for side in (False, True)
            )
            assert low <= exact * (1 + 1e-9)
            assert high >= exact * (1 - 1e-9)
            assert high - low <= width * exact


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([gaussian, laplace]),
    st.floats(0.3, 10.0),
    st.floats(1e-3, 1.0),
    st.sampled_from([Direction.REMOVE, Direction.ADD]),
    st.floats(1e-3, 0.05),
)
def test_one_law_lies_above_and_one_below_the_whole_profile(leaf, multiplier, rate, direction, step):
    event = sampled(leaf(multiplier), rate)
    other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
    for above in (True, False):
        dots = lines.dots(event, direction, step, math.log(1e-20), 64.0, below=None if above else joint.BELOW)
        law = lattice.law(dots, tilt=0.0, above=above)
        masses = law.mass * math.exp(law.log_scale)
        for t in (-1.7, -0.31, -0.0123, 0.0, 0.0077, 0.09, 0.5, 1.3):
            if t >= 0.0:
                exact = math.exp(float(event.log_profile([t], direction=direction)[0]))
            else:
                back = math.exp(float(event.log_profile([-t], direction=other)[0]))
                exact = 1.0 - math.exp(t) + math.exp(t) * back
            losses = law.index * step
            found = float(sum(m * -math.expm1(t - x) for m, x in zip(masses, losses, strict=True) if x > t))
            if above:
                assert (found + law.infinite) * math.exp(law.growth) >= exact * (1 - 1e-12)
            else:
                assert found * math.exp(-law.growth) <= exact * (1 + 1e-11) + 1e-18


def test_six_fresh_draws():
    priced = price(Repeated(sampled(gaussian(3.0), 0.1), count=6), method="pld")
    low, high = priced.epsilon_interval(1e-5)
    assert low <= priced.epsilon(1e-5) == pytest.approx(0.3528, abs=1e-4)
    assert high - low <= 1e-4
    assert priced.certified


@pytest.mark.parametrize("delta", [1e-12, 1e-30, 1e-100])
def test_tiny_deltas(delta):
    low, high = plans.interval(plans.plan(Repeated(sampled(gaussian(1.0), 0.01), count=10_000)), math.log(delta))
    assert 0.0 < high - low <= 1e-3 * high


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("multiplier", [0.002, 0.02, 1.0, 1000.0])
def test_memory_is_bounded(multiplier):
    plan = Composed(
        (Repeated(gaussian(1.0), count=10), Repeated(sampled(gaussian(multiplier), 0.01), count=10_000), laplace(10.0))
    )
    tracemalloc.start()
    price(plan, method="pld").epsilon(1e-5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def binomial_epsilon(epsilon, rate, count, delta):
    """Of sampled randomised responses: two outcomes a draw, so that the losses are binomial; the larger direction."""
    with mp.workdps(40):
        up = 1 / (1 + mp.exp(-mpf(epsilon)))
        absent = (1 - up, up)
        present = tuple((1 - mpf(rate)) * q + mpf(rate) * p for p, q in ((up, 1 - up), (1 - up, up)))
        best = mpf(0)
        for p, q in ((present, absent), (absent, present)):
            losses = [k * mp.log(p[0] / q[0]) + (count - k) * mp.log(p[1] / q[1]) for k in range(count + 1)]
            masses = [mp.binomial(count, k) * p[0] ** k * p[1] ** (count - k) for k in range(count + 1)]
            pairs = list(zip(masses, losses, strict=True))

            def over(epsilon, pairs=pairs):
                return sum(m * -mp.expm1(epsilon - x) for m, x in pairs if x > epsilon) > delta

            low, high = mpf(0), max(*losses, mpf(0)) if over(mpf(0)) else mpf(0)
            for _ in range(44):
                middle = (low + high) / 2
                low, high = (middle, high) if over(middle) else (low, middle)
            best = max(best, high)
        return float(best)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.02, 4.0),
    st.one_of(st.just(1.0), st.floats(1e-3, 1.0)),
    st.integers(2, 60),
    st.sampled_from([0.1, 1e-3, 1e-6, 1e-12]),
)
def test_sampled_randomised_responses_enclose_the_binomial_law(epsilon, rate, count, delta):
    event = PureEvent(epsilon=epsilon, adjacency=A)
    low, high = both(Repeated(event if rate == 1.0 else sampled(event, rate), count=count), delta)
    exact = binomial_epsilon(epsilon, rate, count, delta)
    assert low <= exact * (1.0 + 1e-12)
    assert high >= exact * (1.0 - 1e-12)
    tightest = price(Repeated(sampled(event, rate), count=count)).epsilon(delta)
    assert exact * (1.0 - 1e-12) <= tightest <= max(high, low)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=25, deadline=None)
@given(st.floats(0.3, 30.0), st.integers(2, 10**7), st.floats(-250.0, -0.5))
def test_no_bound_from_above_is_below_a_gaussian_closed_form(multiplier, count, log10_delta):
    """At rate 1, where everything is known: neither by epsilon nor by delta."""
    mu, delta = math.sqrt(count) / multiplier, 10.0**log10_delta
    exact = gdp.epsilon(mu, delta)
    found = plans.plan(Repeated(gaussian(multiplier), count=count))
    if exact > 1e4:
        return
    assert plans.epsilon(found, math.log(delta), above=True) >= exact * (1.0 - 1e-12)
    with mp.workdps(40 + int(-log10_delta)):
        m, e = mp.sqrt(count) / mpf(multiplier), mpf(exact)
        truth = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
        assert plans.log_delta(found, exact, above=True) >= mp.log(truth) - mpf("1e-11")


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("rate", [1e-5, 0.2])
def test_what_hardly_ever_differs_costs_no_more_than_that_it_does(rate):
    """Losses of 135,000 nats fit no lattice; with noise this small both are there with the probability of a sample."""
    event = Repeated(sampled(laplace(7.4e-6), rate), count=2)
    differs = -math.expm1(2.0 * math.log1p(-rate))
    assert price(event).epsilon(differs * (1.0 + 1e-9)) == 0.0
    assert price(event).epsilon(differs * (1.0 - 1e-9)) > 0.0
    assert differs * (1.0 - 1e-12) <= price(event).delta(0.0) <= differs * (1.0 + 1e-9)


def test_a_difference_too_small_for_a_float_is_not_none():
    event = Repeated(sampled(gaussian(40.0), 1e-9), count=3)
    assert price(event).delta(3.0) > 0.0


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(("multiplier", "reference"), [(0.387, 2.728192), (0.41, 1.861926)])
def test_a_few_hits_of_little_noise_among_many_draws_need_no_coarse_lattice(multiplier, reference):
    """Six of 1e5 draws hit. References: inversion of the moments; dp-accounting's bound for the first is 2.728476."""
    event = Repeated(sampled(gaussian(multiplier), 6.266134301080212e-05), count=10**5)
    assert reference - 1e-6 <= price(event).epsilon(1e-3) <= reference * 1.001
