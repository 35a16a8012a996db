import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import BoundedRangeEvent, Composed, PoissonSampled, PureEvent, Repeated
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
EPSILONS = (1e-8, 0.1, 0.999, 1.0, 5.0, 60.0)
ORDERS = [1 + 1e-7, 1.01, 1.5, 2.0, 64.0, 1e4]


def ranged(epsilon: float, adjacency: Adjacency = A) -> BoundedRangeEvent:
    return BoundedRangeEvent(epsilon=epsilon, adjacency=adjacency)


def two_outcomes(epsilon, t):
    """(P, Q) of the two outcomes with log ratios t and t - epsilon, in mpmath."""
    up, down = mp.exp(t), mp.exp(t - epsilon)
    light = (1 - down) / (up - down)
    return (light * up, (1 - light) * down), (light, 1 - light)


def largest(function, end):
    """The largest value over (0, end): a scan that rests on no shape, then golden sections."""
    scan = [end * mp.mpf(i) / 64 for i in range(1, 64)] + [end * (1 - mp.mpf(2) ** -k) for k in range(7, 40)]
    values = [function(t) for t in scan]
    best = max(range(len(scan)), key=values.__getitem__)
    low, high = (max([t for t in scan if t < scan[best]], default=mp.mpf(0)),
                 min([t for t in scan if t > scan[best]], default=end))  # fmt: skip
    golden = (mp.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if function(left) > function(right) else (left, high)
    return max(values[best], function((low + high) / 2))


@pytest.mark.slow_after(1)  # the truth by integrals or enumeration
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_renyi_is_the_largest_over_all_shifts(epsilon: float) -> None:
    with mp.workdps(60):
        for order, value in zip(ORDERS, ranged(epsilon).renyi(ORDERS), strict=True):
            a = mp.mpf(order)

            def moment(t, a=a):
                return sum(x**a * y ** (1 - a) for x, y in zip(*two_outcomes(mp.mpf(epsilon), t), strict=True))

            exact = mp.log(largest(moment, mp.mpf(epsilon))) / (a - 1)
            assert -1e-20 <= (mp.mpf(float(value)) - exact) / exact < 1e-13


@pytest.mark.slow_after(1)  # every shift by mpmath's integrals
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("rate", [1e-6, 0.3, 1 - 1e-9])
def test_sampled_moments_are_the_largest_over_all_shifts(epsilon: float, rate: float) -> None:
    powers = [1.0001, 1.5, 2.0, 3.7, 300.5, -0.001, -1.0, -40.0]
    values = ranged(epsilon).log_excess_moments(powers, sampling_rate=rate)
    with mp.workdps(60):
        q = mp.mpf(rate)
        for power, value in zip(powers, values, strict=True):
            p = mp.mpf(power)

            def moment(t, p=p):
                parts = zip(*two_outcomes(mp.mpf(epsilon), t), strict=True)
                return sum(y * ((1 - q + q * x / y) ** p - 1 - p * q * (x / y - 1)) for x, y in parts)

            exact = mp.log(largest(moment, mp.mpf(epsilon)))
            assert -1e-18 <= mp.mpf(float(value)) - exact < 1e-13 * (10 + abs(exact))


@pytest.mark.slow  # the truth by integrals or enumeration
@given(
    epsilon=st.floats(1e-3, 30.0), shift=st.floats(0.001, 0.999), rate=st.floats(1e-6, 1.0), order=st.floats(1.01, 80)
)
def test_no_shift_costs_more(epsilon: float, shift: float, rate: float, order: float) -> None:
    event = PoissonSampled(ranged(epsilon), sampling_rate=rate)
    with mp.workdps(80):
        with_unit, without = two_outcomes(mp.mpf(epsilon), mp.mpf(epsilon) * mp.mpf(shift))
        q = mp.mpf(rate)
        mixed = [(1 - q) * y + q * x for x, y in zip(with_unit, without, strict=True)]
        for direction, (top, bottom) in ((Direction.REMOVE, (mixed, without)), (Direction.ADD, (without, mixed))):
            moment = mp.fsum(x**order * y ** (1 - mp.mpf(order)) for x, y in zip(top, bottom, strict=True))
            exact = mp.log(moment) / (mp.mpf(order) - 1)
            assert mp.mpf(float(event.renyi([order], direction=direction)[0])) >= exact
            for level in (0.0, 0.3 * epsilon, 0.9 * epsilon):
                x = mp.exp(mp.mpf(level))
                stick = mp.fsum(max(u - x * v, 0) for u, v in zip(top, bottom, strict=True))
                found = mp.exp(mp.mpf(float(event.log_profile([level], direction=direction)[0])))
                assert found >= stick * (1 - mp.mpf(10) ** -14)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_profile_is_the_largest_over_all_shifts(epsilon: float) -> None:
    grid = np.array([0.0, 0.3, 0.999, 1.0, 2.0]) * epsilon
    values = ranged(epsilon).log_profile(grid, direction=Direction.ADD)
    with mp.workdps(60):
        for level, value in zip(grid[:3], values[:3], strict=True):
            x = mp.exp(mp.mpf(float(level)))

            def stick(t, x=x):
                return sum(max(u - x * v, 0) for u, v in zip(*two_outcomes(mp.mpf(epsilon), t), strict=True))

            exact = largest(stick, mp.mpf(epsilon))
            assert -1e-18 <= mp.mpf(float(value)) - mp.log(exact) < 1e-12
    assert np.all(values[3:] == -np.inf)


def test_an_exponential_mechanism_is_one() -> None:
    """Scores that move by 0, 1/2 and 1: the loss has a range of epsilon, and the event's price holds."""
    epsilon, scores = 1.3, np.array([0.0, 0.2, 0.5])
    laws = [np.exp(epsilon * s) / np.exp(epsilon * s).sum() for s in (scores, scores + np.array([0.0, 0.5, 1.0]))]
    event = ranged(epsilon)
    for p, q in (laws, laws[::-1]):
        loss = np.log(p / q)
        assert np.ptp(loss) == pytest.approx(epsilon, rel=1e-12)
        for order in (1.5, 2.0, 30.0):
            assert np.log(np.sum(p**order * q ** (1 - order))) / (order - 1) <= event.renyi([order])[0]
        for level in (0.0, 0.2, 0.6):
            stick = np.maximum(p - np.exp(level) * q, 0).sum()
            assert stick <= np.exp(event.log_profile([level], direction=Direction.REMOVE)[0])


@pytest.mark.slow  # the truth by integrals or enumeration
@given(epsilon=st.floats(1e-6, 50.0), order=st.floats(1.0 + 1e-6, 1e5))
def test_it_is_zero_concentrated_and_below_randomised_response(epsilon: float, order: float) -> None:
    """Cesar and Rogers 2021, Lemma 1.1: eps^2 / 8; and no more than any pure mechanism of the same epsilon."""
    value = ranged(epsilon).renyi([order])[0]
    assert value <= order * epsilon**2 / 8 * (1 + 1e-12)
    assert value <= PureEvent(epsilon=epsilon, adjacency=A).renyi([order])[0] * (1 + 1e-12)


def test_small_ranges_reach_the_concentrated_bound() -> None:
    assert ranged(1e-4).renyi([2.0])[0] == pytest.approx(2.0 * 1e-8 / 8, rel=1e-8)


def test_renyi_by_the_supremum_of_pairs_not_by_the_integral_of_the_profile() -> None:
    assert ranged(1.0).renyi([2.0])[0] == pytest.approx(0.240, abs=5e-4)


def test_a_thousand_exponential_mechanisms() -> None:
    plan = Repeated(ranged(0.1), count=1000)
    assert 8.5 < price(plan).epsilon(1e-6) <= 8.85


@pytest.mark.parametrize("count", [2, 50, 1000])
def test_repeating_counts(count: int) -> None:
    """The count is not dropped: n times the event is n events, at every order and in the price."""
    event = ranged(1.0)
    repeated, composed = Repeated(event, count=count), Composed((event,) * count)
    np.testing.assert_allclose(repeated.renyi(ORDERS), count * event.renyi(ORDERS), rtol=1e-14)
    assert price(repeated).epsilon(1e-6) == pytest.approx(price(composed).epsilon(1e-6), rel=1e-12)
    assert repeated.pure_epsilon() == count
    assert price(repeated).epsilon(1e-6) > price(event).epsilon(1e-6)


def test_fifty_at_epsilon_one() -> None:
    """A peer that dropped the count said 1.0035 for any number of these; fifty cost more than twenty."""
    assert price(Repeated(ranged(1.0), count=50)).epsilon(1e-5) > 20.0


@pytest.mark.parametrize("epsilon", [1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("rate", [1e-100, 0.5, 1.0])
def test_extremes_stay_numbers(epsilon: float, rate: float) -> None:
    event = PoissonSampled(ranged(epsilon), sampling_rate=rate)
    for direction in Direction:
        values = event.renyi([1 + 1e-6, 2.0, 1e6], direction=direction)
        assert np.all(np.isfinite(values) & (values > 0.0))
        assert not np.isnan(event.log_profile([0.0, epsilon, 1.0, np.inf], direction=direction)).any()


def test_a_sample_of_two_selections_is_refused() -> None:
    with pytest.raises(UnsupportedEvent):
        PoissonSampled(Repeated(ranged(1.0), count=2), sampling_rate=0.5).renyi([2.0])


@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf, 1e-200, None])
def test_bad_epsilons_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon="):
        ranged(value)  # type: ignore[arg-type]
