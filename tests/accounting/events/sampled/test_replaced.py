import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import Event, GaussianEvent, LaplaceEvent, PureEvent, ReplaceOneSampled
from ledgerwood.accounting.events.sampled import poisson

R = Adjacency.REPLACE_ONE
EVENTS = [
    GaussianEvent(noise_multiplier=0.8, adjacency=R),
    LaplaceEvent(noise_multiplier=0.5, adjacency=R),
    PureEvent(epsilon=0.7, adjacency=R),
]
ORDERS = np.array([1.2, 2.0, 2.7, 12.0])


def integral(function: object, profile: poisson.Profile, over: np.ndarray) -> float:
    """The integral over the nodes' range, in a variable that is monotone in them."""
    ends = np.sort(
        over[np.searchsorted(profile.nodes, np.linspace(0.0, profile.nodes[-1], 12) ** 2 / profile.nodes[-1])]
    )
    return sum(quad(function, a, b, epsabs=0.0, epsrel=1e-9, limit=200)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.slow  # certified integrals by mpmath
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("q", [0.01, 0.6])
def test_integrals_lie_on_the_side_that_they_must(event: Event, q: float) -> None:
    t = poisson.nodes_of(event)
    t = t[t <= 20.0]
    seen = poisson.seen(event, None)
    near = poisson.Profile(t, seen.log_values[: t.size], seen.log_above[: t.size - 1], seen.log_below[: t.size - 1])
    log_s = np.log1p(q * np.expm1(t))
    scale = np.zeros(ORDERS.size)
    above = np.exp(poisson._cells(ORDERS, t, log_s, near.log_values, scale))
    below = np.exp(poisson._cells_from_below(ORDERS, t, log_s, near, scale))
    for order, high, low in zip(ORDERS, above, below, strict=True):

        def value(y: float, order: float = order) -> float:
            h = math.exp(event.log_profile([math.log(y)], direction=Direction.REMOVE)[0])
            return (1.0 - q + q * y) ** (order - 2.0) * h

        truth = integral(value, near, np.exp(t))
        assert low <= truth * (1.0 + 1e-8)
        assert high >= truth * (1.0 - 1e-8)
        assert high - low <= (2e-3 if order <= 3.0 else 3e-2) * truth  # steeper weights, for the same cells


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_nodes_reach_the_end_of_the_profile(event: Event) -> None:
    nodes = poisson.nodes_of(event)
    assert nodes[0] == 0.0
    assert np.all(np.diff(nodes) > 0.0)
    assert event.log_profile(nodes[-1:], direction=Direction.REMOVE)[0] < -600.0 * (1.0 - 1e-9)
    assert nodes[-1] <= event.pure_epsilon()


def test_the_present_and_the_replaced_profile_are_mixed() -> None:
    """q [(1 - b) H_present(t') + b H_replaced(t')], in plain numbers."""
    changed, present = (PureEvent(epsilon=e, adjacency=r) for e, r in ((1.0, R), (0.5, Adjacency.ADD_REMOVE)))
    q, t = 0.25, 0.05
    y = 1.0 + math.expm1(t) / q
    share = math.exp(t) / y

    def profile(epsilon: float) -> float:
        return (math.exp(epsilon) - y) / (1.0 + math.exp(epsilon))

    wanted = q * ((1.0 - share) * profile(0.5) + share * profile(1.0))
    found = math.exp(poisson.log_amplified(np.array([t]), q, changed, present)[0])
    assert found == pytest.approx(wanted, rel=1e-12)
    assert poisson.log_amplified(np.array([np.inf]), q, changed, present)[0] == -math.inf


@pytest.mark.parametrize("rate", [0.8125, 0.9375, 0.99])
def test_rounding_below_no_loss_at_all_is_no_error(rate):
    event = ReplaceOneSampled(
        GaussianEvent(noise_multiplier=1.0, adjacency=Adjacency.REPLACE_ONE),
        add_remove=GaussianEvent(noise_multiplier=1.0, adjacency=Adjacency.ADD_REMOVE),
        sampling_rate=rate,
    )
    assert (event.renyi([1.25, 2.0, 64.0]) > 0.0).all()
    assert (event.log_profile([0.0, 1e-9], direction=Direction.ADD) < 0.0).all()
