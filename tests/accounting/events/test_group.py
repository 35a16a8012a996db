import itertools
import math

import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FixedSizeSampled,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    ProfileEvent,
    PureEvent,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    ZeroConcentratedEvent,
    grouped,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
GAUSSIAN = GaussianEvent(noise_multiplier=3.0, adjacency=A)
ORDERS = np.array([1.5, 2.0, 8.0])


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_noise_of_a_fixed_scale() -> None:
    assert grouped(GAUSSIAN, size=3) == GaussianEvent(noise_multiplier=1.0, adjacency=A)
    assert grouped(LaplaceEvent(noise_multiplier=1.0, adjacency=R), size=4).pure_epsilon() == 4.0
    box = EllipticalGaussianEvent(sensitivities=(1.0, 0.5), stddevs=(2.0, 4.0), adjacency=A)
    assert grouped(box, size=2) == EllipticalGaussianEvent(sensitivities=(2.0, 1.0), stddevs=(2.0, 4.0), adjacency=A)
    for kind in (DiscreteLaplaceEvent, DiscreteGaussianEvent):
        assert grouped(kind(scale=2.0, sensitivity=3, adjacency=A), size=5) == kind(
            scale=2.0, sensitivity=15, adjacency=A
        )
    assert grouped(GDPEvent(mu=0.25, adjacency=A), size=4).mu() == 1.0
    assert grouped(ZeroConcentratedEvent(rho=0.5, adjacency=A), size=3) == ZeroConcentratedEvent(rho=4.5, adjacency=A)


def test_ranges_and_pure_epsilons_add_up() -> None:
    for kind in (PureEvent, BoundedRangeEvent):
        event = grouped(kind(epsilon=0.1, adjacency=A), size=3)
        assert isinstance(event, kind)
        assert event.pure_epsilon() == pytest.approx(0.3, rel=1e-15)
    # three selections, each on data one unit further: their log ratios add up to a range of three epsilon
    utilities = np.array([[0.0, 1.0, 0.5, 2.0], [1.0, 0.0, 0.5, 2.5], [2.0, 1.0, 1.5, 1.5], [1.0, 2.0, 0.5, 1.0]])
    weights = np.exp(0.7 * utilities / 2.0)
    laws = weights / weights.sum(axis=1, keepdims=True)
    bound = grouped(BoundedRangeEvent(epsilon=0.7, adjacency=A), size=3)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        limit = math.exp(bound.log_profile([epsilon], direction=Direction.REMOVE)[0])
        assert hockey_stick(laws[0], laws[3], epsilon) <= limit
        assert hockey_stick(laws[3], laws[0], epsilon) <= limit


def test_several_responses_are_several_answers() -> None:
    one = RandomizedResponseEvent(epsilon=0.8, categories=3, adjacency=R)
    odds = np.array([[math.exp(0.8), 1.0, 1.0], [1.0, math.exp(0.8), 1.0]]) / (math.exp(0.8) + 2.0)
    p, q = (np.array([a * b for a, b in itertools.product(row, row)]) for row in odds)
    for order in (1.5, 2.0, 7.0):
        exact = math.log(np.sum(p**order * q ** (1.0 - order))) / (order - 1.0)
        assert grouped(one, size=2).renyi([order])[0] == pytest.approx(exact, rel=1e-12)


def test_a_failure_probability_grows_along_the_chain() -> None:
    """Each data set between may fail: the worst chain of revealing responses stays under the statement."""
    event = grouped(ApproximateEvent(epsilon=0.4, delta=1e-3, adjacency=A), size=3)
    assert isinstance(event, ApproximateEvent)
    wanted = 1e-3 * (1.0 + math.exp(0.4) + math.exp(0.8))
    assert wanted <= event.delta <= wanted * (1.0 + 1e-12)
    assert event.epsilon == pytest.approx(1.2, rel=1e-15)
    tiny = grouped(ApproximateEvent(epsilon=1e-20, delta=1e-3, adjacency=A), size=4)
    assert tiny.delta == pytest.approx(4e-3, rel=1e-12)
    with pytest.raises(InvalidParameter, match="no \\(epsilon, delta\\)"):
        grouped(ApproximateEvent(epsilon=1.0, delta=1e-2, adjacency=A), size=6)


def test_compositions_are_grouped_member_by_member() -> None:
    plan = Composed((GAUSSIAN, Repeated(PureEvent(epsilon=0.1, adjacency=A), count=5)))
    wanted = grouped(GAUSSIAN, size=2).renyi(ORDERS) + 5 * PureEvent(epsilon=0.2, adjacency=A).renyi(ORDERS)
    np.testing.assert_allclose(grouped(plan, size=2).renyi(ORDERS), wanted, rtol=1e-13)
    assert grouped(plan, size=1) is plan


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(GAUSSIAN, sampling_rate=0.1),
        FixedSizeSampled(GaussianEvent(noise_multiplier=3.0, adjacency=R), sample_size=1, population=9),
        Parallel.worst((GAUSSIAN, GAUSSIAN)),
        RenyiEvent(orders=(2.0,), divergences=(0.1,), adjacency=A),
        ProfileEvent(epsilons=(1.0,), deltas=(0.1,), adjacency=A),
        PoissonSelection(GAUSSIAN, mean=2.0),
        Composed((GAUSSIAN, PoissonSampled(GAUSSIAN, sampling_rate=0.1))),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_has_no_group_event_is_refused(event: Event) -> None:
    with pytest.raises(UnsupportedEvent, match="no group event"):
        grouped(event, size=2)


def test_bad_sizes_are_refused() -> None:
    for size in (0, 1.5, True, 10**6 + 1):
        with pytest.raises(InvalidParameter):
            grouped(GAUSSIAN, size=size)  # type: ignore[arg-type]
