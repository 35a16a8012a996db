"""Pairs that no reflection exchanges: both directions count, and the larger is taken after composition."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events import Composed, Event, GaussianEvent, Parallel, PoissonSampled, Repeated
from ledgerwood.accounting.pricing import price

A = Adjacency.ADD_REMOVE
ORDERS = np.array([1.5, 2.0, 4.0, 20.0])
DELTAS = [0.01, 0.1, 0.3]
RATE = 0.5


@dataclass(frozen=True)
class Table(Event):
    """A law with the unit and a law without it, outcome by outcome."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def adjacency(self) -> Adjacency:
        return A

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> Any:
        p, q = (self.p, self.q) if direction is Direction.REMOVE else (self.q, self.p)
        t = np.exp(np.asarray(epsilons, dtype=float))[..., None]
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(np.array(p) - t * np.array(q), 0.0).sum(axis=-1))

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> Any:
        if direction is None:
            return np.maximum(*(self.renyi(orders, direction=d) for d in Direction))
        return divergence(self.p, self.q, np.asarray(orders), direction)

    def pure_epsilon(self) -> float:
        return float(np.abs(np.log(np.array(self.p) / np.array(self.q))).max())

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> Any:
        a = renyi.check_powers(powers)[:, None]
        q = np.array(self.q)
        s = 1.0 - sampling_rate + sampling_rate * np.array(self.p) / q
        return np.log((q * (s**a - 1.0 - a * (s - 1.0))).sum(axis=1))


def divergence(p: Any, q: Any, orders: Any, direction: Direction) -> Any:
    p, q = np.array(p), np.array(q)
    if direction is Direction.ADD:
        p, q = q, p
    a = orders[:, None]
    return np.log((p**a * q ** (1.0 - a)).sum(axis=1)) / (orders - 1.0)


def mixed(table: Table) -> tuple[float, ...]:
    return tuple(RATE * p + (1.0 - RATE) * q for p, q in zip(table.p, table.q, strict=True))


ADD_HEAVY = Table((0.01, 0.99), (0.3, 0.7))  # an outcome that the unit makes rare
REMOVE_HEAVY = Table((0.3, 0.7), (0.01, 0.99))
SAMPLED = PoissonSampled(ADD_HEAVY, sampling_rate=RATE)


@pytest.mark.parametrize("table", [ADD_HEAVY, REMOVE_HEAVY])
def test_a_sample_takes_the_larger_direction(table: Table) -> None:
    both = [divergence(mixed(table), table.q, ORDERS, d) for d in Direction]
    event = PoissonSampled(table, sampling_rate=RATE)
    np.testing.assert_allclose(event.renyi(ORDERS), np.maximum(*both), rtol=1e-11)
    for direction, exact in zip(Direction, both, strict=True):
        np.testing.assert_allclose(event.renyi(ORDERS, direction=direction), exact, rtol=1e-11)


def test_a_composition_adds_up_before_it_takes_the_larger_direction() -> None:
    opposite = Composed((Repeated(ADD_HEAVY, count=2), REMOVE_HEAVY, PoissonSampled(REMOVE_HEAVY, sampling_rate=RATE)))
    sums = [
        2 * divergence(ADD_HEAVY.p, ADD_HEAVY.q, ORDERS, d)
        + divergence(REMOVE_HEAVY.p, REMOVE_HEAVY.q, ORDERS, d)
        + divergence(mixed(REMOVE_HEAVY), REMOVE_HEAVY.q, ORDERS, d)
        for d in Direction
    ]
    np.testing.assert_allclose(opposite.renyi(ORDERS), np.maximum(*sums), rtol=1e-11)


def test_groups_take_the_larger_direction() -> None:
    gaussian = GaussianEvent(noise_multiplier=50.0, adjacency=A)
    for event in (
        Parallel((ADD_HEAVY, gaussian), probabilities=(0.5, 0.5)),
        Parallel.worst((SAMPLED, gaussian)),
        PoissonSampled(Parallel((SAMPLED, gaussian), probabilities=(0.9, 0.1)), sampling_rate=0.9),
    ):
        both = [event.renyi(ORDERS, direction=d) for d in Direction]
        np.testing.assert_array_equal(event.renyi(ORDERS), np.maximum(*both))
        assert np.all(both[0] != both[1])


@pytest.mark.parametrize("delta", DELTAS)
def test_a_price_covers_both_directions(delta: float) -> None:
    for event, p, q in ((ADD_HEAVY, ADD_HEAVY.p, ADD_HEAVY.q), (SAMPLED, mixed(ADD_HEAVY), ADD_HEAVY.q)):
        t = np.exp(price(event).epsilon(delta))
        for one, other in ((p, q), (q, p)):
            assert np.maximum(np.array(one) - t * np.array(other), 0.0).sum() <= delta * (1 + 1e-12)
