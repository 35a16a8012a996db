"""Skellam noise against sums over the integers, whose probabilities are mpmath's Bessel functions."""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    Composed,
    GaussianEvent,
    PoissonSampled,
    Repeated,
    SkellamEvent,
    SkellamVectorEvent,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = [1 + 1e-6, 1.5, 2.0, 3.7, 12.3]
EPSILONS = [0.0, 1e-9, 0.1, 1.0, 2.5, 6.0, 20.0]


def skellam(variance: float, sensitivity: int = 1) -> SkellamEvent:
    return SkellamEvent(variance=variance, sensitivity=sensitivity, adjacency=A)


def vector(variance: float, sensitivity: float) -> SkellamVectorEvent:
    return SkellamVectorEvent(variance=variance, l2_sensitivity=sensitivity, adjacency=A)


LAWS = [skellam(1e-12), skellam(1e-3, 4), skellam(0.3, 2), skellam(1.0), skellam(7.0, 3), skellam(60.0, 12)]


@functools.cache
def probability(k: int, variance: float) -> mp.mpf:
    with mp.workdps(80):
        return mp.exp(-mp.mpf(variance)) * mp.besseli(abs(k), mp.mpf(variance))


@functools.cache
def pair(event: SkellamEvent) -> list[tuple[mp.mpf, mp.mpf]]:
    """(P, Q) of every integer in a wide window."""
    v, shift = event.variance, event.sensitivity
    wide = int(24 * v**0.5) + 14 * shift + 60
    return [(probability(z - shift, v), probability(z, v)) for z in range(-wide, wide + shift + 1)]


@pytest.mark.slow_after(2)  # the truth is enumerated in mpmath
@pytest.mark.parametrize("event", LAWS, ids=repr)
@pytest.mark.parametrize("rate", [1.0, 0.2, 1e-4])
def test_renyi_by_enumeration_of_the_integers(event: SkellamEvent, rate: float) -> None:
    sampled = PoissonSampled(event, sampling_rate=rate)
    with mp.workdps(60):
        q, atoms = mp.mpf(rate), pair(event)
        ratios = [(y, 1 - q + q * x / y) for x, y in atoms]
        for direction in Direction:
            for order, value in zip(ORDERS, sampled.renyi(ORDERS, direction=direction), strict=True):
                p = mp.mpf(order) if direction is Direction.REMOVE else 1 - mp.mpf(order)
                exact = mp.log1p(mp.fsum(y * (s**p - 1 - p * (s - 1)) for y, s in ratios)) / (mp.mpf(order) - 1)
                assert 0 <= (mp.mpf(float(value)) - exact) / exact < 1e-12


@pytest.mark.slow_after(5)  # the truth by integrals or enumeration
@pytest.mark.parametrize("event", LAWS, ids=repr)
@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_profile_by_enumeration_of_the_integers(event: SkellamEvent, rate: float) -> None:
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


@given(exponent=st.floats(-12.0, 2.5), sensitivity=st.integers(1, 5), epsilon=st.floats(0.0, 30.0))
@settings(max_examples=25)
def test_any_profile_by_enumeration(exponent: float, sensitivity: int, epsilon: float) -> None:
    event = skellam(10.0**exponent, sensitivity)
    with mp.workdps(60):
        t = mp.exp(mp.mpf(epsilon))
        exact = mp.fsum(max(x - t * y, 0) for x, y in pair(event))
        found = mp.exp(mp.mpf(float(event.log_profile([epsilon], direction=Direction.REMOVE)[0])))
        assert exact * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -50 <= found
        assert found <= exact * (1 + mp.mpf(10) ** -10) + mp.mpf(10) ** -30


@pytest.mark.parametrize(("variance", "sensitivity"), [(0.5, 1), (0.5, 6), (1e-12, 2), (90.0, 3)])
def test_far_tails_are_bounded_from_above(variance: float, sensitivity: int) -> None:
    """Beyond the window: P from the first integer on whose log ratio is above epsilon."""
    event, epsilons = skellam(variance, sensitivity), [9.0, 40.0, 90.0]
    with mp.workdps(60):
        for epsilon, value in zip(epsilons, event.log_profile(epsilons, direction=Direction.REMOVE), strict=True):
            v, t = mp.mpf(variance), mp.mpf(epsilon)
            least = v * mp.sinh(t / sensitivity)  # log r(z) <= d asinh(z / v)
            if least < 3000:  # the first integers decide
                first = next(
                    z
                    for z in itertools.count(max(int(least) - 1, 0))
                    if probability(z - sensitivity, variance) > mp.exp(t) * probability(z, variance)
                )
                exact = mp.fsum(
                    probability(z - sensitivity, variance) - mp.exp(t) * probability(z, variance)
                    for z in range(first, first + 40)
                )
                assert mp.log(exact) <= value
                assert value < 0.0
            else:
                assert -np.inf < value < -800.0


@given(exponent=st.floats(-12.0, 3.0))
@settings(max_examples=30)
def test_the_law_bends_most_at_its_centre_or_less_than_the_bound(exponent: float) -> None:
    """The two facts about Bessel functions that the vector's bound rests on."""
    with mp.workdps(50):
        v = mp.mpf(10.0**exponent)
        law = [mp.besseli(k, v) for k in range(26)]
        bends = [mp.log(law[k] ** 2 / (law[abs(k - 1)] * law[k + 1])) for k in range(25)]
        assert max(bends[1:]) < -mp.log(1 - min(mp.mpf(1) / 2, 1 / mp.sqrt(v**2 + mp.mpf(3) / 4)))
        own = float(vector(float(v), 1.0).renyi([2.0])[0])  # at order 2, d^2 times the largest bend
        assert max(bends) <= own
        steps = [mp.log(law[k] / law[k + 1]) for k in range(25)]
        for k, step in enumerate(steps):
            assert mp.asinh((k + mp.mpf(1) / 2) / v) < step < mp.asinh((k + 1) / v)


@given(
    variance=st.floats(0.05, 300.0),
    shifts=st.lists(st.integers(-6, 6), min_size=1, max_size=2).filter(any),
    order=st.floats(1.0 + 1e-6, 8.0),
)
@settings(max_examples=40)
def test_a_vector_costs_no_more_than_its_bound(variance: float, shifts: list[int], order: float) -> None:
    """Independent coordinates: their exact divergences add up."""
    moved = [abs(shift) for shift in shifts if shift]
    exact = sum(float(skellam(variance, shift).renyi([order])[0]) for shift in moved)
    bound = vector(variance, math.sqrt(sum(shift * shift for shift in moved)))
    assert exact <= float(bound.renyi([order])[0]) * (1 + 1e-11)


@given(
    variance=st.floats(1.0, 1e4),
    moved=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    order=st.integers(2, 60),
)
def test_the_vector_bound_is_below_the_published_one(variance: float, moved: list[int], order: int) -> None:
    """Agarwal, Kairouz and Liu 2021, Corollary 3.6, where the first of its two terms is the smaller."""
    l1, square = sum(moved), sum(d * d for d in moved)
    first = ((2 * order - 1) * square + 6 * l1) / (4 * variance**2)
    if first <= 1.5 * l1 / variance:
        published = order * square / (2 * variance) + first
        assert vector(variance, math.sqrt(square)).renyi([float(order)])[0] <= published


def test_two_coordinates_by_enumeration_of_the_plane() -> None:
    with mp.workdps(40):
        v, order = 2.5, mp.mpf(3)
        line = {d: [(probability(z - d, v), probability(z, v)) for z in range(-60, 61)] for d in (1, 2)}
        moment = mp.fsum((x1 * x2) ** order * (y1 * y2) ** (1 - order) for x1, y1 in line[1] for x2, y2 in line[2])
        assert mp.log(moment) / (order - 1) <= float(vector(v, math.sqrt(5.0)).renyi([3.0])[0])


@pytest.mark.parametrize(("variance", "excess"), [(100.0, 6e-3), (1e4, 6e-5), (1e9, 1e-8), (1e20, 1e-12)])
def test_the_vector_bound_comes_to_the_gaussian_one(variance: float, excess: float) -> None:
    orders, sensitivity = np.array([2.0, 3.0, 17.0]), 3.0
    line = 0.5 * orders * sensitivity**2 / variance
    found = vector(variance, sensitivity).renyi(orders)
    assert np.all(found >= line)
    assert np.all(found <= line * (1 + excess))


def test_the_vector_bound_is_a_chord_between_whole_orders() -> None:
    event = vector(50.0, 2.0)
    whole = event.renyi([2.0, 3.0, 4.0])
    at = np.array([1.0, 2.0, 3.0]) * whole  # (a - 1) D_a
    assert event.renyi([1.0 + 1e-9])[0] == pytest.approx(whole[0], rel=1e-12)
    assert event.renyi([2.25])[0] * 1.25 == pytest.approx(0.75 * at[0] + 0.25 * at[1], rel=1e-12)
    assert event.renyi([3.5])[0] * 2.5 == pytest.approx(0.5 * at[1] + 0.5 * at[2], rel=1e-12)
    assert np.all(np.diff(event.renyi(np.linspace(1.001, 9.0, 500))) >= -1e-14)


def test_wide_noise_comes_to_the_gaussian() -> None:
    fine, line = skellam(1e6, 500), GaussianEvent(noise_multiplier=2.0, adjacency=A)
    assert price(fine).epsilon(1e-6) == pytest.approx(price(line).epsilon(1e-6), rel=1e-5)
    np.testing.assert_allclose(fine.renyi(ORDERS), line.renyi(ORDERS), rtol=1e-5)


@pytest.mark.slow  # the truth by integrals or enumeration
@given(variance=st.floats(0.01, 300.0), sensitivity=st.integers(1, 6), factor=st.floats(1.0, 4.0))
@settings(max_examples=40)
def test_a_larger_shift_or_less_noise_costs_more(variance: float, sensitivity: int, factor: float) -> None:
    near = skellam(variance * factor, sensitivity)
    for far in (skellam(variance * factor, sensitivity + 1), skellam(variance, sensitivity)):
        assert np.all(near.renyi(ORDERS) <= far.renyi(ORDERS) * (1 + 1e-11))
        h, g = (np.exp(e.log_profile(EPSILONS, direction=Direction.ADD)) for e in (near, far))
        assert np.all(h <= g * (1 + 1e-10) + 1e-300)


@pytest.mark.slow_after(3)  # the truth by integrals or enumeration
@pytest.mark.parametrize("event", [skellam(1e-12), skellam(1e-12, 1000), skellam(3.0, 400), skellam(1e6)], ids=repr)
def test_extreme_values_stay_numbers(event: SkellamEvent) -> None:
    epsilons = [1e-9, 1.0, 700.0, 1e4, 1e300, np.inf]
    for direction in Direction:
        deep = event.log_profile(epsilons, direction=direction)
        assert np.all(np.diff(deep) <= 0.0)
        assert np.all(deep[:-1] > -np.inf)
        assert deep[-1] == -np.inf
    for rate in (1.0, 0.5, 1e-6):
        sampled = PoissonSampled(event, sampling_rate=rate)
        for direction in Direction:
            values = sampled.renyi([1.001, 40.0, 1e6], direction=direction)
            assert np.all(np.isfinite(values))
            assert np.all(values > 0.0)
            assert np.all(np.diff(values) >= -1e-11 * values[1:])


def test_orders_beyond_the_window_have_the_vector_bound() -> None:
    event, bound = skellam(100.0, 50), vector(100.0, 50.0)
    assert event.renyi([1e6])[0] == pytest.approx(bound.renyi([1e6])[0], rel=1e-12)
    assert event.renyi([40.0])[0] < 0.5 * bound.renyi([40.0])[0]


@pytest.mark.slow  # the truth by integrals or enumeration
def test_a_plan_of_vectors_and_counts_has_a_price() -> None:
    plan = Composed((vector(4096.0, 12.5), Repeated(skellam(20.0), count=4)))
    alone = [price(part).epsilon(5e-7) for part in plan.events]
    assert max(alone) < price(plan).epsilon(1e-6) < sum(alone)


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e-13, 1e13, math.inf, math.nan, "1"])
def test_a_bad_variance_is_refused(variance: object) -> None:
    with pytest.raises(InvalidParameter, match="variance=.*squared units"):
        SkellamEvent(variance=variance, sensitivity=1, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("sensitivity", [0, 1.0, True, 2**18 + 1])
def test_a_bad_sensitivity_is_refused(sensitivity: object) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity=.*units of the statistic"):
        SkellamEvent(variance=1.0, sensitivity=sensitivity, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("sensitivity", [0.0, 0.5, 1e101, math.nan])
def test_a_bad_vector_sensitivity_is_refused(sensitivity: float) -> None:
    with pytest.raises(InvalidParameter, match="l2_sensitivity=.*units of the statistic"):
        vector(1.0, sensitivity)


def test_noise_that_is_too_wide_names_the_vector_event() -> None:
    with pytest.raises(UnsupportedEvent, match="SkellamVectorEvent"):
        skellam(1e9)
    with pytest.raises(UnsupportedEvent, match="cannot be sampled"):
        PoissonSampled(vector(1.0, 1.0), sampling_rate=0.5).renyi([2.0])
    with pytest.raises(UnsupportedEvent, match="no privacy profile"):
        vector(1.0, 1.0).log_profile([1.0], direction=Direction.ADD)
