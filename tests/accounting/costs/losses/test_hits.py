"""A single draw decides: the bound is never above the exact delta, and near it where hits are rare."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    ZeroConcentratedEvent,
    price,
)
from ledgerwood.accounting.costs.losses import hits
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE
BOTH = (Direction.REMOVE, Direction.ADD)


def response(epsilon, rate):
    return PoissonSampled(PureEvent(epsilon=epsilon, adjacency=A), sampling_rate=rate)


def exact(kinds, direction, epsilon):
    """delta of draws of sampled randomised responses, by counting how many of each kind came out true."""
    ways = []
    for size, rate, count in kinds:
        true = 1 / (1 + mp.exp(-mpf(size)))
        with_unit = [mpf(rate) * t + (1 - mpf(rate)) * (1 - t) for t in (true, 1 - true)]
        without = [1 - true, true]
        p, q = (with_unit, without) if direction is Direction.REMOVE else (without, with_unit)
        binomial = [mp.binomial(count, k) for k in range(count + 1)]
        ways.append([(b * p[0] ** k * p[1] ** (count - k), b * q[0] ** k * q[1] ** (count - k))
                     for k, b in enumerate(binomial)])  # fmt: skip
    total = mpf(0)
    for outcome in itertools.product(*ways):
        p, q = mp.fprod(pair[0] for pair in outcome), mp.fprod(pair[1] for pair in outcome)
        total += max(p - mp.exp(mpf(epsilon)) * q, 0)
    return total


@settings(max_examples=30, deadline=None)
@given(
    kinds=st.lists(
        st.tuples(st.floats(0.1, 8.0), st.floats(1e-6, 1.0), st.integers(1, 12)), min_size=1, max_size=2
    ),
    epsilon=st.floats(0.0, 8.0),
    exponent=st.floats(-20.0, -0.1),
)  # fmt: skip
def test_it_is_never_above_the_exact_delta(kinds, epsilon, exponent):
    parts = tuple((response(size, rate), count) for size, rate, count in kinds)
    with mp.workdps(40):
        for direction in BOTH:
            at_epsilon = float(mp.log(exact(kinds, direction, epsilon)))
            for log_delta in {exponent, at_epsilon} - {-math.inf}:
                found = hits.epsilon(parts, direction, log_delta)
                least = mp.exp(mpf(log_delta)) * (1 - mpf(10) ** -30)
                assert found == 0.0 or exact(kinds, direction, found) >= least


def test_it_is_near_the_exact_delta_where_hits_are_rare():
    kinds = [(6.0, 1e-4, 20), (5.0, 1e-4, 10)]
    parts = tuple((response(size, rate), count) for size, rate, count in kinds)
    with mp.workdps(40):
        truth = float(mp.log(exact(kinds, Direction.REMOVE, 0.02)))
    assert hits.epsilon(parts, Direction.REMOVE, truth) <= 0.02 < hits.epsilon(parts, Direction.REMOVE, truth - 0.2)


def test_two_gaussian_draws_by_quadrature():
    """delta = E_P h(epsilon - loss) of the other draw, in 30 digits."""
    rate, mu, epsilon = mpf("1e-3"), mpf(2), mpf("1.25")
    with mp.workdps(30):

        def height(t):  # the profile of one draw at any real loss
            inner = (mp.exp(t) - 1 + rate) / rate
            if inner <= 0:
                return 1 - mp.exp(t)
            x = mp.log(inner)
            return rate * (mp.ncdf(mu / 2 - x / mu) - inner * mp.ncdf(-mu / 2 - x / mu))

        def term(z):
            ratio = 1 - rate + rate * mp.exp(mu * z - mu * mu / 2)
            return mp.npdf(z) * ratio * height(epsilon - mp.log(ratio))

        truth = mp.quad(term, [-12, -4, 0, 2, 3, 4, 5, 6, 8, 12, 20])
    sampled = PoissonSampled(GaussianEvent(noise_multiplier=0.5, adjacency=A), sampling_rate=1e-3)
    at = float(mp.log(truth))
    below, near = (hits.epsilon(((sampled, 2),), Direction.REMOVE, each) for each in (at, at - 0.05))
    assert below <= float(epsilon) < near


@pytest.mark.parametrize(
    ("count", "rate", "delta", "multiplier"),
    [(100, 1e-4, 1e-10, 0.5), (10_000, 1e-6, 1e-30, 0.5)],
)
def test_plans_that_were_wide_are_narrow(count, rate, delta, multiplier):
    sampled = PoissonSampled(GaussianEvent(noise_multiplier=multiplier, adjacency=A), sampling_rate=rate)
    low, high = price(Repeated(sampled, count=count)).epsilon_interval(delta)
    assert 0.0 < high - low < 1e-3 * high


def test_a_delta_that_no_draw_decides_and_a_draw_without_a_bound():
    parts = ((PoissonSampled(LaplaceEvent(noise_multiplier=0.2, adjacency=A), sampling_rate=1e-4), 50),)
    assert hits.epsilon(parts, Direction.REMOVE, math.log(1e-5)) > 0.0
    assert hits.epsilon(parts, Direction.REMOVE, -1e-3) == 0.0
    with pytest.raises(UnsupportedEvent):
        hits.epsilon(((ZeroConcentratedEvent(rho=0.1, adjacency=A), 2),), Direction.REMOVE, -5.0)
