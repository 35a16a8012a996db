import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = [1 + 1e-6, 1.5, 2.0, 3.7, 12.3]
EPSILONS = [0.0, 0.1, 0.5, 1.0, 2.5, 6.0]


def laplace(scale: float, sensitivity: int = 1) -> DiscreteLaplaceEvent:
    return DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity, adjacency=A)


def gaussian(scale: float, sensitivity: int = 1) -> DiscreteGaussianEvent:
    return DiscreteGaussianEvent(scale=scale, sensitivity=sensitivity, adjacency=A)


LAWS = [
    laplace(0.3),
    laplace(2.0),
    laplace(5.0, 7),
    gaussian(0.1),
    gaussian(0.2, 3),
    gaussian(0.5),
    gaussian(1.0),
    gaussian(0.7, 3),
    gaussian(2.5, 4),
    gaussian(3.0, 12),
    gaussian(4.0, 2),
]


def pair(event: Event) -> list[tuple[mp.mpf, mp.mpf]]:
    """(P, Q) of every integer in a wide window, straight from the definition."""
    b, shift = mp.mpf(event.scale), event.sensitivity
    if isinstance(event, DiscreteLaplaceEvent):
        wide = int(180 * event.scale) + shift + 5

        def weight(z):
            return mp.exp(-abs(mp.mpf(z)) / b)
    else:
        wide = int(45 * event.scale) + 16 * shift + 10

        def weight(z):
            return mp.exp(-(mp.mpf(z) ** 2) / (2 * b * b))

    total = mp.fsum(weight(z) for z in range(-2 * wide, 2 * wide + 1))
    return [(weight(z - shift) / total, weight(z) / total) for z in range(-wide, wide + shift + 1)]


@pytest.mark.slow_after(2)  # the truth is enumerated in mpmath
@pytest.mark.parametrize("event", LAWS, ids=repr)
@pytest.mark.parametrize("rate", [1.0, 0.2, 1e-4])
def test_renyi_by_enumeration_of_the_integers(event: Event, rate: float) -> None:
    sampled = PoissonSampled(event, sampling_rate=rate)
    with mp.workdps(50):
        q, atoms = mp.mpf(rate), pair(event)
        for direction in Direction:
            for order, value in zip(ORDERS, sampled.renyi(ORDERS, direction=direction), strict=True):
                p = mp.mpf(order) if direction is Direction.REMOVE else 1 - mp.mpf(order)
                moment = mp.fsum(y * (((1 - q) + q * x / y) ** p - 1 - p * q * (x / y - 1)) for x, y in atoms if y > 0)
                exact = mp.log1p(moment) / (mp.mpf(order) - 1)
                assert 0 <= (mp.mpf(float(value)) - exact) / exact < 1e-12


@pytest.mark.slow_after(2)  # the truth is enumerated in mpmath
@pytest.mark.parametrize("event", LAWS, ids=repr)
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_profile_by_enumeration_of_the_integers(event: Event, rate: float) -> None:
    sampled = PoissonSampled(event, sampling_rate=rate)
    with mp.workdps(60):
        q, atoms = mp.mpf(rate), pair(event)
        mixed = [((1 - q) * y + q * x, y) for x, y in atoms]
        for direction in Direction:
            values = sampled.log_profile(EPSILONS, direction=direction)
            for epsilon, value in zip(EPSILONS, values, strict=True):
                t = mp.exp(mp.mpf(epsilon))
                ends = mixed if direction is Direction.REMOVE else [(y, x) for x, y in mixed]
                exact = mp.fsum(max(x - t * y, 0) for x, y in ends)
                found = mp.exp(mp.mpf(float(value)))
                assert exact * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -50 <= found
                assert found <= exact * (1 + mp.mpf(10) ** -11) + mp.mpf(10) ** -40


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_discrete_laplace_of_sensitivity_one_is_randomised_response(scale: float) -> None:
    event, response = laplace(scale), PureEvent(epsilon=1.0 / scale, adjacency=A)
    np.testing.assert_allclose(event.renyi(ORDERS), response.renyi(ORDERS), rtol=1e-12)
    for direction in Direction:
        np.testing.assert_allclose(
            np.exp(event.log_profile(EPSILONS, direction=direction)),
            np.exp(response.log_profile(EPSILONS, direction=direction)),
            rtol=1e-12,
            atol=1e-16,
        )


@given(scale=st.floats(0.1, 50.0), sensitivity=st.integers(1, 30), order=st.floats(1.0 + 1e-6, 1e4))
def test_discrete_gaussian_is_zero_concentrated(scale: float, sensitivity: int, order: float) -> None:
    """Canonne, Kamath and Steinke 2020, Proposition 5; attained where order times sensitivity is whole."""
    event, bound = gaussian(scale, sensitivity), 0.5 * (sensitivity / scale) ** 2
    assert event.renyi([order])[0] <= order * bound * (1 + 1e-12)
    whole = math.ceil(order) + 1.0
    assert event.renyi([whole])[0] == pytest.approx(whole * bound, rel=1e-12)


def test_small_scales_cost_less_than_the_bound_between_whole_orders() -> None:
    assert gaussian(0.3).renyi([1.5])[0] < 0.85 * 1.5 / (2 * 0.09)


def test_fine_lattices_come_to_the_line() -> None:
    fine, line = gaussian(4000.0, 2000), GaussianEvent(noise_multiplier=2.0, adjacency=A)
    assert price(fine).epsilon(1e-6) == pytest.approx(price(line).epsilon(1e-6), rel=1e-6)
    wide, plain = laplace(4000.0, 2000), LaplaceEvent(noise_multiplier=2.0, adjacency=A)
    np.testing.assert_allclose(wide.renyi(ORDERS), plain.renyi(ORDERS), rtol=1e-3)
    assert np.all(np.diff(fine.log_profile(np.linspace(0, 30, 300), direction=Direction.ADD)) < 0.0)


@given(scale=st.floats(0.3, 8.0), sensitivity=st.integers(1, 6), kind=st.sampled_from([laplace, gaussian]))
def test_a_larger_shift_costs_more(scale: float, sensitivity: int, kind) -> None:
    near, far = kind(scale, sensitivity), kind(scale, sensitivity + 1)
    assert np.all(near.renyi(ORDERS) <= far.renyi(ORDERS) * (1 + 1e-12))
    h, g = (np.exp(e.log_profile(EPSILONS, direction=Direction.ADD)) for e in (near, far))
    assert np.all(h <= g * (1 + 1e-11))


def test_deep_tails_and_extreme_orders_stay_numbers() -> None:
    event = gaussian(0.7, 2)
    assert 0.0 < price(event).epsilon(1e-300) < 200.0
    deep = event.log_profile([100.0, 1e3, 1e6, 1e300, np.inf], direction=Direction.REMOVE)
    assert np.all(np.diff(deep[:3]) < 0.0)
    assert deep[-1] == -np.inf
    for rate in (1e-6, 0.5):
        sampled = PoissonSampled(event, sampling_rate=rate)
        for direction in Direction:
            values = sampled.renyi([1 + 1e-6, 1e3, 1e6], direction=direction)
            assert np.all(np.isfinite(values) & (values > 0.0))
            assert np.all(np.diff(values) > 0.0)


def test_repeating_counts() -> None:
    event = gaussian(1.0)
    np.testing.assert_allclose(Repeated(event, count=9).renyi(ORDERS), 9 * event.renyi(ORDERS), rtol=1e-14)
    assert Repeated(laplace(2.0, 3), count=10).pure_epsilon() == 15.0


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e-3, 1e13, None])
@pytest.mark.parametrize("kind", [laplace, gaussian])
def test_bad_scales_are_refused(kind, value: object) -> None:
    with pytest.raises(InvalidParameter, match="scale="):
        kind(value)


@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, True, None, 2**18 + 1])
@pytest.mark.parametrize("kind", [laplace, gaussian])
def test_bad_sensitivities_are_refused(kind, value: object) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity="):
        kind(2.0, value)


def test_too_wide_a_law_is_refused_with_what_may_be_stated() -> None:
    with pytest.raises(UnsupportedEvent, match=r"ZeroConcentratedEvent\(rho=0.125\)"):
        gaussian(20_000.0, 10_000)
