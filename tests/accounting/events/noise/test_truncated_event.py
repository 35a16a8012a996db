"""Truncated Laplace noise against its two densities, piece by piece in closed form."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import LaplaceEvent, PoissonSampled, Repeated, TruncatedLaplaceEvent
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE


def truncated(noise_multiplier: float, bound: float) -> TruncatedLaplaceEvent:
    return TruncatedLaplaceEvent(noise_multiplier=noise_multiplier, bound=bound, adjacency=A)


def hockey_stick(multiplier: float, bound: float, epsilon: float, rate: float, direction: Direction) -> mp.mpf:
    """The integral of (p - e^epsilon q)+ of the sampled pair, by tanh-sinh quadrature between its corners."""
    b, limit, t, q = mp.mpf(multiplier), mp.mpf(bound), mp.exp(mp.mpf(epsilon)), mp.mpf(rate)
    total = 2 * b * (1 - mp.exp(-limit / b))

    def density(x: mp.mpf) -> mp.mpf:
        return mp.exp(-abs(x) / b) / total if abs(x) <= limit else mp.mpf(0)

    def gap(x: mp.mpf) -> mp.mpf:
        without = density(x)
        with_unit = q * density(x - 1) + (1 - q) * without
        first, second = (with_unit, without) if direction is Direction.REMOVE else (without, with_unit)
        return max(first - t * second, mp.mpf(0))

    corners = {-limit, 1 - limit, mp.mpf(0), mp.mpf(1), limit, 1 + limit}
    for sign in (1, -1):  # where the log ratio of the unsampled pair crosses the level that decides
        inner = 1 + (mp.exp(sign * mp.mpf(epsilon)) - 1) / q
        if inner > 0:
            corners.add(min(max((b * mp.log(inner) + 1) / 2, 1 - limit), limit))
    points = sorted(corners)
    shrink = mp.mpf(10) ** -40  # the ends belong to the piece on whose side they are
    return mp.fsum(mp.quad(gap, [x + shrink, y - shrink]) for x, y in itertools.pairwise(points))


@pytest.mark.slow_after(3)  # the truth is an integral in mpmath
@pytest.mark.parametrize(("multiplier", "bound"), [(1.0, 0.6), (0.3, 0.9), (1.0, 1.0), (0.7, 3.0), (4.0, 20.0)])
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.value)
def test_profile_by_quadrature(multiplier: float, bound: float, rate: float, direction: Direction) -> None:
    event = PoissonSampled(truncated(multiplier, bound), sampling_rate=rate)
    epsilons = [0.0, 0.05, 0.2, 0.9, 1.4, 5.0]
    with mp.workdps(30):
        for epsilon, value in zip(epsilons, event.log_profile(epsilons, direction=direction), strict=True):
            exact = hockey_stick(multiplier, bound, epsilon, rate, direction)
            found = mp.exp(mp.mpf(float(value)))
            assert exact * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -20 <= found <= exact * (1 + mp.mpf(10) ** -12)


def closed_form(multiplier: float, bound: float, epsilon: float) -> mp.mpf:
    """P - e^epsilon Q of the outputs above the crossing, by the distribution function."""
    b, limit, t = mp.mpf(multiplier), mp.mpf(bound), mp.mpf(epsilon)
    kept = 1 - mp.exp(-limit / b)

    def above(x: mp.mpf) -> mp.mpf:
        if abs(x) >= limit:
            return mp.mpf(0) if x > 0 else mp.mpf(1)
        if x > 0:
            return (mp.exp(-x / b) - mp.exp(-limit / b)) / (2 * kept)
        return (2 - mp.exp(x / b) - mp.exp(-limit / b)) / (2 * kept)

    x = (b * t + 1) / 2
    x = limit if x >= 1 or x >= limit else x  # only what Q does not reach
    return above(x - 1) - mp.exp(t) * above(x)


@pytest.mark.slow  # the truth by integrals or enumeration
@given(
    multiplier=st.floats(-12.0, 12.0).map(lambda x: 10.0**x),
    bound=st.floats(-0.3, 9.0).map(lambda x: 10.0**x),
    epsilon=st.one_of(st.just(0.0), st.floats(-9.0, 2.845).map(lambda x: 10.0**x)),
)
def test_profile_over_all_sizes(multiplier: float, bound: float, epsilon: float) -> None:
    with mp.workdps(60):
        for direction in Direction:
            value = mp.mpf(float(truncated(multiplier, bound).log_profile([epsilon], direction=direction)[0]))
            exact = closed_form(multiplier, bound, epsilon)
            with mp.workdps(3000 if exact < mp.mpf(10) ** -40 else 60):
                exact = closed_form(multiplier, bound, epsilon)
                if exact < mp.mpf(10) ** -2900:
                    assert value < -6000
                else:
                    assert mp.log(exact) <= value <= mp.log(exact) * (1 - mp.mpf(10) ** -13) + mp.mpf(10) ** -11


@pytest.mark.parametrize("bound", [0.7, 1.0, 1.5, 40.0])
def test_what_lies_out_of_reach_is_the_delta_that_stays(bound: float) -> None:
    event = truncated(2.0, bound)
    with mp.workdps(40):
        kept = 1 - mp.exp(-mp.mpf(bound) / 2)
        # the noise is above bound - 1 with this probability
        exact = mp.quad(lambda x: mp.exp(-abs(x) / 2) / (4 * kept), sorted({bound - 1, max(bound - 1, 0.0), bound}))
    for direction in Direction:
        values = np.exp(event.log_profile([0.5, 1.0, 1e3, np.inf], direction=direction))
        np.testing.assert_allclose(values, float(exact), rtol=1e-12)
    assert event.pure_epsilon() == math.inf
    assert np.all(np.isposinf(event.renyi([1.5, 9.0])))


@given(epsilon=st.floats(1e-6, 20.0), delta=st.floats(1e-15, 0.4))
def test_the_published_bound_gives_epsilon_and_delta(epsilon: float, delta: float) -> None:
    """Geng, Ding, Guo and Kumar 2020: A = (sensitivity / epsilon) log(1 + (e^epsilon - 1) / (2 delta))."""
    bound = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
    if bound >= 1.0:
        found = truncated(1 / epsilon, bound).log_profile([epsilon], direction=Direction.REMOVE)[0]
        assert math.exp(found) == pytest.approx(delta, rel=1e-9)


def test_a_far_bound_is_laplace_noise() -> None:
    far, laplace = truncated(1.5, 1e4), LaplaceEvent(noise_multiplier=1.5, adjacency=A)
    epsilons = np.linspace(0.0, 0.66, 12)
    for direction in Direction:
        np.testing.assert_allclose(
            far.log_profile(epsilons, direction=direction),
            laplace.log_profile(epsilons, direction=direction),
            rtol=1e-12,
        )


@given(multiplier=st.floats(0.05, 20.0), bound=st.floats(0.51, 40.0), factor=st.floats(1.0, 5.0))
def test_a_smaller_shift_costs_less(multiplier: float, bound: float, factor: float) -> None:
    """The same noise, in units of a smaller shift."""
    epsilons = np.linspace(0.0, 8.0, 9)
    small, large = truncated(multiplier * factor, bound * factor), truncated(multiplier, bound)
    h, g = (np.exp(e.log_profile(epsilons, direction=Direction.ADD)) for e in (small, large))
    assert np.all(h <= g * (1 + 1e-11))


def test_its_price_is_read_from_the_profile_alone() -> None:
    event = truncated(2.0, 30.0)
    assert price(event).epsilon(1e-5) < 0.5
    with pytest.raises(UnsupportedEvent, match="infinite"):
        price(Repeated(event, count=2), method="renyi").epsilon(1e-5)
    with pytest.raises(UnsupportedEvent):
        price(event).epsilon(1e-12)


@pytest.mark.parametrize("bound", [0.0, 0.5, -3.0, 1e101, math.inf, math.nan, "1"])
def test_a_bad_bound_is_refused(bound: object) -> None:
    with pytest.raises(InvalidParameter, match="bound=.*sensitivities"):
        TruncatedLaplaceEvent(noise_multiplier=1.0, bound=bound, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, 1e-101])
def test_a_bad_multiplier_is_refused(multiplier: float) -> None:
    with pytest.raises(InvalidParameter, match="noise_multiplier="):
        truncated(multiplier, 2.0)
