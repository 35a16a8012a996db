"""Plans with very many different draws: the same answers, each draw asked once."""

import math

import numpy as np
import pytest

from ledgerwood.accounting import (
    Adjacency,
    Composed,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    Repeated,
    price,
)
from ledgerwood.accounting.costs import conversion, crowds, gdp
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def epsilons(orders, divergences):
    return conversion.renyi_epsilons(orders, divergences, math.log(1e-6))


SPREAD = np.geomspace(20.0, 400.0, 600)
TINY = tuple(PureEvent(epsilon=float(1e-5 / b), adjacency=A) for b in SPREAD)
CROWDS = {
    "alike": Composed(tuple(laplace(float(b)) for b in SPREAD)),
    "one dear": Composed((gaussian(0.5), *(laplace(float(100 * b)) for b in SPREAD))),
    "one dear, in the middle": Composed((*TINY[:301], gaussian(0.3), *TINY[301:])),
    "nested": Repeated(Composed(tuple(Repeated(laplace(float(b)), count=1 + int(b)) for b in SPREAD)), count=3),
}


@pytest.mark.slow  # prices plans of many kinds
@pytest.mark.parametrize("name", list(CROWDS))
def test_a_crowd_has_the_least_value_over_all_orders(name):
    event = CROWDS[name]
    best, least = crowds.least_over_orders(event, epsilons)
    every = conversion.least_over_orders(event.renyi, epsilons)
    assert every.value <= best.value <= every.value * (1 + 1e-3)
    at = np.array([conversion.LEAST_ORDER, best.order])
    exact = event.renyi(at)
    assert best.value == pytest.approx(float(epsilons(at, exact)[1]), rel=1e-6)
    assert exact[0] * (1 - 1e-12) <= least <= exact[0] * (1 + 1e-6)


@pytest.mark.slow_after(2)  # prices plans of many kinds
@pytest.mark.parametrize("kind", [gaussian, laplace])
@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_draws_of_one_family_are_read_off_one_table(kind, rate):
    multipliers = [0.7, *np.geomspace(0.9, 1e4, 90)]
    draws = {PoissonSampled(kind(float(s)), sampling_rate=rate): 1 + i for i, s in enumerate(multipliers)}
    draws[PureEvent(epsilon=0.3, adjacency=A)] = 7  # not of the family
    orders = np.array([1.0 + 1e-6, 1.7, 4.0, 60.0])
    exact = sum(draw.renyi(orders) * count for draw, count in draws.items())
    found = crowds.divergences_of(draws, orders)
    assert (found >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_each_direction_is_summed_apart_where_none_is_known_to_be_larger():
    mixed = Parallel((PoissonSampled(gaussian(1.0), sampling_rate=0.3), laplace(5.0)), probabilities=(0.5, 0.5))
    assert not mixed.removal_dominates()
    draws = {mixed: 3, laplace(2.0): 1}
    orders = np.array([1.5, 8.0])
    exact = np.max(
        [sum(draw.renyi(orders, direction=side) * count for draw, count in draws.items()) for side in Direction], axis=0
    )
    found = crowds.divergences_of(draws, orders)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, rtol=1e-12)


def test_each_draw_of_a_crowd_is_asked_a_bounded_number_of_times(monkeypatch):
    asked = []
    original = LaplaceEvent.renyi

    def counted(self, orders, *, direction=None):
        asked.append(self)
        return original(self, orders, direction=direction)

    monkeypatch.setattr(LaplaceEvent, "renyi", counted)
    event = Composed(tuple(laplace(float(b)) for b in np.linspace(100.0, 900.0, 5000)))
    assert price(event, method="renyi").epsilon(1e-6) < event.pure_epsilon()
    assert len(asked) < 2 * 5000


def test_few_draws_are_priced_as_ever():
    event = Composed((laplace(20.0), gaussian(3.0)))
    best, _ = crowds.least_over_orders(event, epsilons)
    assert best == conversion.least_over_orders(event.renyi, epsilons)


@pytest.mark.slow  # prices plans of many kinds
def test_a_hundred_thousand_different_gaussians_are_exact():
    multipliers = np.linspace(500.0, 1500.0, 100_000)
    event = Composed(tuple(gaussian(float(s)) for s in multipliers))
    mu = math.sqrt(math.fsum(multipliers**-2.0))
    assert price(event).epsilon(1e-6) == pytest.approx(gdp.epsilon(mu, 1e-6), rel=1e-12)
    assert len(repr(event)) < 300


@pytest.mark.slow  # prices plans of many kinds
def test_a_crowd_is_priced_by_the_default_and_has_a_lower_end():
    event = Composed(tuple(PoissonSampled(gaussian(float(s)), sampling_rate=0.01) for s in np.linspace(2.0, 9.0, 520)))
    lower, upper = price(event).epsilon_interval(1e-6)
    alike = price(Repeated(PoissonSampled(gaussian(2.0), sampling_rate=0.01), count=520), method="renyi")
    assert 0.0 < lower < upper < alike.epsilon(1e-6)


def test_a_crowd_without_divergences_is_refused():
    unpriced = PoissonSampled(Composed((laplace(2.0), gaussian(3.0))), sampling_rate=0.1)
    with pytest.raises(UnsupportedEvent):
        price(Composed((*(laplace(float(b)) for b in SPREAD), unpriced)), method="renyi")
