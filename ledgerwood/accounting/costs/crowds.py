"""Privacy costs by Renyi divergences of plans with very many different draws: each is evaluated once, at few orders.

docs/explanation/pricing.md#crowds.
"""

from typing import TypeVar

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import conversion, renyi
from ledgerwood.accounting.costs.conversion import Best, Objective
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.individuals import IndividualRenyi
from ledgerwood.errors import UnsupportedEvent

Item = TypeVar("Item")

_CROWD = 512  # different draws from which on a plan is a crowd
_PILOTS = 64
_FAMILY = 64  # draws that differ in their multiplier alone, from which on a table serves them
_BLOCK = 8192
_WINDOW = np.linspace(-0.5, 0.5, 33)  # of the logarithm of order - 1, around the pilots' best one
_ALL = np.linspace(np.log(1e-6), np.log(1e6), 65)


def least_over_orders(event: Event, objective: Objective) -> tuple[Best, float]:
    """`conversion.least_over_orders`, and the event's divergence (nats) at the least order.

    Of a crowd, some draws tell near which order the best one lies; then the whole plan is evaluated at a window of
    orders there or, where its best one is at the edge, at all decades and a second window. Each order gives a bound.

    Raises:
        UnsupportedEvent: the objective is infinite at every order.
    """
    draws = _draws(event)
    if len(draws) <= _CROWD:
        least = float(event.renyi(np.array([conversion.LEAST_ORDER]))[0])
        return conversion.least_over_orders(event.renyi, objective), least
    pilots = _spread(list(draws.items()), _PILOTS)
    pilot = Composed(tuple(Repeated(draw, count=count) for draw, count in pilots))
    scale = len(draws) / len(pilots)
    start = conversion.least_over_orders(lambda orders: scale * pilot.renyi(orders), objective).order
    best, least = Best(np.inf, start), np.inf
    log_gaps = np.log(start - 1.0) + _WINDOW
    for wide in (False, True, False):
        orders = np.concatenate(([conversion.LEAST_ORDER], 1.0 + np.exp(log_gaps)))
        divergences = divergences_of(draws, orders)
        values: FloatArray = np.where(np.isposinf(divergences), np.inf, objective(orders, divergences))[1:]
        least, place = min(least, float(divergences[0])), int(np.argmin(values))
        best = min(best, Best(float(values[place]), float(orders[1 + place])))
        if not wide and 0 < place < len(log_gaps) - 1:
            break
        log_gaps = _ALL if not wide else _ALL[place] + _WINDOW
    if not np.isfinite(best.value):
        raise UnsupportedEvent("every Renyi divergence of the event is infinite: this method cannot bound its epsilon")
    return best, least


def divergences_of(draws: dict[Event, int], orders: FloatArray) -> FloatArray:
    """Renyi divergences of fresh draws, each with its count, at the orders (k,), in nats; the larger direction.

    Draws that differ in their multiplier alone are rows of one table, each with its own sensitivity: their
    divergences are over-estimated by `individuals.OVERESTIMATE` at most, and bound both directions.
    """
    families: dict[tuple[type[Event], float, Adjacency], dict[Event, float]] = {}
    for draw in draws:
        inner, rate = (draw.event, draw.sampling_rate) if isinstance(draw, PoissonSampled) else (draw, 1.0)
        if isinstance(inner, GaussianEvent | LaplaceEvent) and draw.adjacency is not Adjacency.REPLACE_ONE:
            families.setdefault((type(inner), rate, draw.adjacency), {})[draw] = inner.noise_multiplier
    total, rest = np.zeros(len(orders)), dict(draws)
    for family in families.values():
        if len(family) >= _FAMILY:
            total += _family(family, draws, orders)
            for draw in family:
                del rest[draw]
    sides = [Direction.REMOVE]
    if not all(draw.removal_dominates() for draw in rest):
        sides.append(Direction.ADD)
    found = [
        total + sum((draw.renyi(orders, direction=side) * n for draw, n in rest.items()), start=np.zeros(len(orders)))
        for side in sides
    ]
    return renyi.raise_by(np.max(found, axis=0), 8 + 2 * len(draws))


def _family(multipliers: dict[Event, float], draws: dict[Event, int], orders: FloatArray) -> FloatArray:
    """The sum over draws that differ in their multiplier alone, shape (k,)."""
    loudest = min(multipliers, key=lambda draw: multipliers[draw])
    table = IndividualRenyi(loudest, orders)
    shrunk = multipliers[loudest] / np.array(list(multipliers.values())) * (1.0 + 4.0 * renyi.ULP)
    sensitivities = np.minimum(shrunk, 1.0)
    counts = np.array([float(draws[draw]) for draw in multipliers])
    total = np.zeros(len(orders))
    for start in range(0, len(counts), _BLOCK):
        part = slice(start, start + _BLOCK)
        total += (table.at(sensitivities[part]) * counts[part, None]).sum(axis=0)
    return total


def require_renyi(event: Event) -> None:
    """Refuse an event without Renyi divergences; of a crowd, some draws answer for all.

    Raises:
        UnsupportedEvent: the event has none.
    """
    for draw in some_draws(event):
        draw.renyi(np.array([2.0]))


def some_draws(event: Event) -> list[Event]:
    """The different draws of a plan; of a crowd, some."""
    draws = list(_draws(event))
    return draws if len(draws) <= _CROWD else _spread(draws, _PILOTS)


def _draws(event: Event) -> dict[Event, int]:
    counts: dict[Event, int] = {}
    for draw, count in event.draws():
        counts[draw] = counts.get(draw, 0) + count
    return counts


def _spread(items: list[Item], count: int) -> list[Item]:
    """`count` items, evenly spread over the list, the last one included."""
    return [items[(place * (len(items) - 1)) // (count - 1)] for place in range(count)]
