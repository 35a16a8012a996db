import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    Composed,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.REPLACE_ONE
EPSILONS = (1e-8, 0.1, 1.0, 5.0, 60.0)


def pure(epsilon: float, adjacency: Adjacency = A) -> PureEvent:
    return PureEvent(epsilon=epsilon, adjacency=adjacency)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_renyi_by_enumeration_of_the_two_outcomes(epsilon: float) -> None:
    orders = [1 + 1e-7, 1.5, 2.0, 64.0, 1e4]
    values = pure(epsilon).renyi(orders)
    with mp.workdps(80):
        t = mp.mpf(epsilon)
        p = [mp.exp(t) / (1 + mp.exp(t)), 1 / (1 + mp.exp(t))]
        for order, value in zip(orders, values, strict=True):
            a = mp.mpf(order)
            exact = mp.log(p[0] ** a * p[1] ** (1 - a) + p[1] ** a * p[0] ** (1 - a)) / (a - 1)
            assert -1e-16 <= (mp.mpf(float(value)) - exact) / exact < 1e-13


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rate", [1e-6, 0.3, 1 - 1e-9])
def test_sampled_renyi_by_enumeration(epsilon: float, rate: float) -> None:
    event = PoissonSampled(pure(epsilon, Adjacency.ADD_REMOVE), sampling_rate=rate)
    orders = [1 + 1e-7, 1.5, 2.0, 64.0, 1e4]
    with mp.workdps(120):
        t, q = mp.mpf(epsilon), mp.mpf(rate)
        without = [1 / (1 + mp.exp(t)), mp.exp(t) / (1 + mp.exp(t))]
        sampled = [(1 - q) * u + q * v for u, v in zip(without, without[::-1], strict=True)]
        for direction, (top, bottom) in ((Direction.REMOVE, (sampled, without)), (Direction.ADD, (without, sampled))):
            for order, value in zip(orders, event.renyi(orders, direction=direction), strict=True):
                a = mp.mpf(order)
                exact = mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in zip(top, bottom, strict=True))) / (a - 1)
                assert 0 <= (mp.mpf(float(value)) - exact) / exact < 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_profile_by_enumeration(epsilon: float) -> None:
    grid = np.array([0.0, 0.3 * epsilon, 0.999 * epsilon, epsilon, 2.0 * epsilon])
    values = pure(epsilon).log_profile(grid, direction=Direction.ADD)
    p = math.exp(-math.log1p(math.exp(-epsilon)))
    exact = np.maximum(p * -np.expm1(grid - epsilon), 0.0)
    np.testing.assert_allclose(np.exp(values), exact, rtol=1e-13)
    assert np.all(values[3:] == -np.inf)


@pytest.mark.parametrize("count", [10, 100])
def test_repeating_counts(count: int) -> None:
    """A hundred randomised responses cost a hundred times one, at any order and in the pure sum."""
    event = pure(1.0987)
    assert Repeated(event, count=count).pure_epsilon() == pytest.approx(count * 1.0987, rel=1e-14)
    orders = np.array([1.5, 2.0, 30.0])
    np.testing.assert_allclose(Repeated(event, count=count).renyi(orders), count * event.renyi(orders), rtol=1e-14)
    np.testing.assert_allclose(Composed((event,) * count).renyi(orders), count * event.renyi(orders), rtol=1e-13)


def test_laplace_costs_no_more_than_any_pure_mechanism() -> None:
    orders = np.geomspace(1.01, 1000.0, 20)
    laplace = LaplaceEvent(noise_multiplier=2.0, adjacency=A)
    assert np.all(laplace.renyi(orders) <= pure(0.5).renyi(orders))


@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf, 1e-200, None])
def test_bad_epsilons_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon="):
        pure(value)  # type: ignore[arg-type]


def response(epsilon: float, categories: int) -> RandomizedResponseEvent:
    return RandomizedResponseEvent(epsilon=epsilon, categories=categories, adjacency=A)


def answers(epsilon: float, categories: int) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """The laws of the answers of two rows of different categories, enumerated."""
    grown = mp.exp(mp.mpf(epsilon))
    odds = [grown, *[mp.mpf(1)] * (categories - 1)]
    total = mp.fsum(odds)
    return [x / total for x in odds], [x / total for x in (odds[1], odds[0], *odds[2:])]


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 4.0])
@pytest.mark.parametrize("categories", [2, 3, 40])
def test_randomised_response_by_enumeration_of_its_answers(epsilon: float, categories: int) -> None:
    event = response(epsilon, categories)
    orders = [1 + 1e-7, 1.5, 2.0, 64.0, 1e4]
    grid = [0.0, 0.3 * epsilon, 0.9 * epsilon, epsilon, 2.0 * epsilon]
    with mp.workdps(80):
        p, q = answers(epsilon, categories)
        for order, value in zip(orders, event.renyi(orders), strict=True):
            a = mp.mpf(order)
            exact = mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in zip(p, q, strict=True))) / (a - 1)
            assert -1e-16 <= (mp.mpf(float(value)) - exact) / exact < 1e-13
        for t, value in zip(grid[:3], event.log_profile(grid, direction=Direction.REMOVE), strict=False):
            exact = mp.fsum(max(x - mp.exp(mp.mpf(t)) * y, 0) for x, y in zip(p, q, strict=True))
            assert -1e-16 <= mp.mpf(float(value)) - mp.log(exact) < 1e-13
        for power in (2.5, -1.5):
            rate = mp.mpf(0.2)
            mixed = [(1 - rate) + rate * x / y for x, y in zip(p, q, strict=True)]
            exact = mp.log(mp.fsum(y * (s ** mp.mpf(power) - 1) for y, s in zip(q, mixed, strict=True)))
            value = event.log_excess_moments([power], sampling_rate=0.2)[0]
            assert -1e-14 <= mp.mpf(float(value)) - exact < 1e-12
    assert np.all(event.log_profile(grid[3:], direction=Direction.ADD) == -np.inf)


def test_two_categories_are_the_pure_pair_and_more_cost_less() -> None:
    orders = [1.01, 2.0, 50.0]
    np.testing.assert_allclose(response(0.7, 2).renyi(orders), pure(0.7).renyi(orders), rtol=1e-14)
    costs = [response(0.7, k).renyi([2.0])[0] for k in (2, 3, 10, 10**6)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 3.0 * costs[2]


@pytest.mark.parametrize("count", [10, 100])
def test_repeated_responses_count(count: int) -> None:
    event = response(0.5, 2)
    assert Repeated(event, count=count).pure_epsilon() == 0.5 * count
    np.testing.assert_allclose(Repeated(event, count=count).renyi([2.0]), count * event.renyi([2.0]), rtol=1e-14)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT])
def test_randomised_response_needs_replace_one(adjacency: Adjacency) -> None:
    with pytest.raises(UnsupportedEvent, match="number of rows"):
        RandomizedResponseEvent(epsilon=1.0, categories=2, adjacency=adjacency)


@pytest.mark.parametrize("categories", [1, 0, -3, 2.0, True, None, 2**53 + 1])
def test_bad_categories_are_refused(categories: object) -> None:
    with pytest.raises(InvalidParameter, match="categories="):
        RandomizedResponseEvent(epsilon=1.0, categories=categories, adjacency=A)  # type: ignore[arg-type]
