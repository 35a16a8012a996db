"""rho bounds the divergences of all orders, and is least where that is claimed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    SkellamEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.costs import concentrated
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = 1.0 + np.logspace(-5, 5, 81)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


EVENTS = [
    gaussian(0.5),
    EllipticalGaussianEvent(sensitivities=(1.0, 0.5), stddevs=(4.0, 2.0), adjacency=A),
    GDPEvent(mu=0.25, adjacency=A),
    ZeroConcentratedEvent(rho=0.125, adjacency=A),
    DiscreteGaussianEvent(scale=0.75, sensitivity=2, adjacency=A),
    DiscreteLaplaceEvent(scale=3.0, sensitivity=2, adjacency=A),
    StaircaseEvent(epsilon=0.5, inner_width=0.4375, adjacency=A),
    RandomizedResponseEvent(epsilon=1.0, categories=5, adjacency=Adjacency.REPLACE_ONE),
    *(pure(epsilon) for epsilon in (1e-3, 0.5, 3.0, 40.0)),
    *(BoundedRangeEvent(epsilon=epsilon, adjacency=A) for epsilon in (0.01, 1.0, 7.0, 30.0)),
    *(laplace(multiplier) for multiplier in (0.02, 0.5, 2.0, 100.0)),
    PoissonSampled(laplace(1.0), sampling_rate=0.05),
    PoissonSampled(laplace(0.1), sampling_rate=0.01),
    PoissonSampled(BoundedRangeEvent(epsilon=1.0, adjacency=A), sampling_rate=0.1),
    Repeated(Composed((gaussian(4.0), Repeated(laplace(3.0), count=2))), count=5),
    Parallel((gaussian(3.0), laplace(4.0)), probabilities=(0.25, 0.5)),
    Parallel.worst((gaussian(3.0), pure(0.5))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_no_divergence_is_above_rho_times_its_order(event):
    divergences = event.renyi(ORDERS)
    assert np.all(divergences <= concentrated.rho(event) * ORDERS * (1.0 + 1e-11))


@pytest.mark.parametrize("epsilon", [1e-160, 1e-9, 1e-3, 0.3, 1.0, 5.0, 60.0])
def test_a_pure_epsilon_is_worth_its_kullback_leibler_divergence(epsilon):
    """The randomised response attains it as the order tends to 1, and it is below Bun and Steinke's bound."""
    with mp.workdps(400):
        e = mpf(epsilon)
        truth = 1 / (1 + mp.exp(-e))
        divergence = truth * e - (1 - truth) * e
        found = mpf(concentrated.pure_rho(epsilon))
        assert divergence <= found
        if epsilon > 1e-140:
            assert found <= divergence * (1 + mpf("1e-9"))
        assert found <= e * e / 2 * (1 + mpf(2) ** -50) + mpf(5e-324)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-3, 20.0), order=st.floats(1.0 + 1e-4, 1e4))
def test_the_randomised_response_never_exceeds_it(epsilon, order):
    with mp.workdps(60):
        e, a = mpf(epsilon), mpf(order)
        total = (mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))
        assert mp.log(total) / (a - 1) <= mpf(concentrated.pure_rho(epsilon)) * a


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-3, 20.0), order=st.floats(1.0 + 1e-4, 1e4), share=st.floats(0.01, 0.99))
def test_no_pair_of_a_bounded_range_exceeds_its_own(epsilon, order, share):
    """Two outputs, log ratios share * epsilon and (share - 1) epsilon: every pair of the range is such."""
    with mp.workdps(60):
        e, a, s = mpf(epsilon), mpf(order), mpf(share)
        high, low = mp.exp(s * e), mp.exp((s - 1) * e)
        q = (1 - low) / (high - low)
        total = q * high**a + (1 - q) * low**a
        rho = mpf(concentrated.rho(BoundedRangeEvent(epsilon=epsilon, adjacency=A)))
        assert mp.log(total) / (a - 1) <= rho * a


def test_exact_values_and_sums():
    rho = concentrated.rho
    assert rho(gaussian(2.0)) == pytest.approx(1 / 8, rel=1e-15)
    assert rho(DiscreteGaussianEvent(scale=4.0, sensitivity=3, adjacency=A)) == 9 / 32
    assert rho(BoundedRangeEvent(epsilon=0.5, adjacency=A)) == 1 / 32
    assert rho(ZeroConcentratedEvent(rho=0.125, adjacency=A)) == 0.125
    assert rho(Repeated(ZeroConcentratedEvent(rho=0.1, adjacency=A), count=3)) >= 3 * Fraction(0.1)
    assert rho(Parallel((pure(1.0), pure(2.0)), probabilities=(0.5, 0.0))) == rho(pure(1.0))
    # a selection of a range so wide that what it is as a pure mechanism is less
    assert rho(BoundedRangeEvent(epsilon=50.0, adjacency=A)) == rho(pure(50.0))


@pytest.mark.parametrize("multiplier", [0.1, 0.5, 2.0, 20.0])
def test_a_laplace_pays_little_more_than_its_kullback_leibler_divergence(multiplier):
    """Which it needs at least: e^-x - 1 + x for x = 1 / multiplier."""
    least = math.expm1(-1.0 / multiplier) + 1.0 / multiplier
    found = concentrated.rho(laplace(multiplier))
    assert least <= found <= least * 1.01
    assert found < concentrated.pure_rho(1.0 / multiplier)


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(gaussian(4.0), sampling_rate=0.01),
        ApproximateEvent(epsilon=0.1, delta=1e-9, adjacency=A),
        RenyiEvent(orders=(2.0,), divergences=(0.01,), adjacency=A),
        SkellamEvent(variance=20.0, sensitivity=1, adjacency=A),
        TruncatedLaplaceEvent(noise_multiplier=2.0, bound=30.0, adjacency=A),
        Composed((gaussian(4.0), PoissonSampled(gaussian(4.0), sampling_rate=0.5))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_has_no_proven_rho_is_refused(event):
    with pytest.raises(UnsupportedEvent, match="no rho is proven"):
        concentrated.rho(event)


def test_sampling_lowers_the_rho_of_no_gaussian():
    """Its divergences over their orders tend to the unsampled one's."""
    sampled = PoissonSampled(gaussian(2.0), sampling_rate=0.01)
    order = np.array([1e6])
    assert sampled.renyi(order)[0] / order[0] == pytest.approx(1 / 8, rel=1e-4)


def best_price(rho, delta):
    """The least price over a fine grid of orders."""
    with mp.workdps(40):
        rho, delta = mpf(rho), mpf(delta)
        orders = [1 + mp.exp(mpf(step) / 200) for step in range(-2700, 2700)]
        return min(rho * a + mp.log1p(-1 / a) - (mp.log(delta) + mp.log(a)) / (a - 1) for a in orders)


@pytest.mark.slow  # searches beside the answer
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-9), (8.0, 1e-6), (0.5, 0.1)])
def test_the_largest_rho_fits_and_no_larger_one_does(epsilon, delta):
    limit = concentrated.largest_rho(epsilon, delta)
    assert best_price(limit, delta) == pytest.approx(epsilon, rel=1e-4)
    assert best_price(limit * 1.001, delta) > epsilon
    assert concentrated.epsilon(limit, delta) == pytest.approx(epsilon, rel=1e-12)
    assert concentrated.epsilon(0.0, delta) == 0.0


@pytest.mark.parametrize(("epsilon", "delta", "match"), [(1.0, 0.0, "delta"), (1e-12, 1e-300, "no rho")])
def test_a_budget_without_any_rho_is_refused(epsilon, delta, match):
    with pytest.raises(InvalidParameter, match=match):
        concentrated.largest_rho(epsilon, delta)
