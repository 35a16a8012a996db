"""How near the two ends come, over plans of all kinds; and what is true of both."""

import math

import pytest

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    Repeated,
    SkellamEvent,
    price,
)
from ledgerwood.accounting.losses import plans
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def training(rate, count, multiplier):
    return Repeated(PoissonSampled(gaussian(multiplier), sampling_rate=rate), count=count)


NARROW = [
    (training(1e-6, 10**8, 1.0), 1e-5),
    (training(1e-4, 100, 1.0), 1e-5),
    (training(1e-3, 2, 1.0), 1e-10),
    (training(1e-3, 10, 0.6), 1e-10),
    (training(1e-3, 100, 0.6), 1e-5),
    (training(4e-3, 100, 0.6), 1e-5),
    (training(0.01, 10**4, 1.0), 1e-3),
    (training(0.01, 10**4, 1.0), 1e-30),
    (training(0.1, 10**5, 30.0), 1e-30),
    (training(0.5, 10**8, 1e3), 1e-6),
    (training(0.9, 1000, 5.0), 1e-12),
    (Repeated(PoissonSampled(pure(0.5), sampling_rate=0.1), count=1000), 1e-6),
    (Repeated(PoissonSampled(laplace(1.0), sampling_rate=0.01), count=10**6), 1e-6),
    (Repeated(laplace(100.0), count=10**8), 1e-6),
    (Repeated(BoundedRangeEvent(epsilon=0.1, adjacency=A), count=1000), 1e-6),
    (Repeated(Parallel((gaussian(1.0), laplace(1.0)), probabilities=(0.1, 0.1)), count=100), 1e-6),
    (Repeated(Parallel.worst((gaussian(1.0), laplace(1.0))), count=20), 1e-6),
    (Composed((gaussian(0.02), PoissonSampled(gaussian(1.0), sampling_rate=0.01))), 1e-5),
    (Repeated(gaussian(0.02), count=2), 1e-5),
    (Repeated(DiscreteLaplaceEvent(scale=1.0, sensitivity=1, adjacency=A), count=100), 1e-5),
    (Repeated(DiscreteGaussianEvent(scale=10.0, sensitivity=1, adjacency=A), count=100), 1e-5),
    (Repeated(SkellamEvent(variance=100.0, sensitivity=2, adjacency=A), count=1000), 1e-6),
    (
        Repeated(
            PoissonSampled(SkellamEvent(variance=2.0, sensitivity=1, adjacency=A), sampling_rate=0.01), count=10_000
        ),
        1e-6,
    ),
    (Repeated(ProfileEvent(epsilons=(0.1, 0.5, 1.0), deltas=(0.05, 0.01, 0.0), adjacency=A), count=50), 1e-6),
]


@pytest.mark.parametrize(("event", "delta"), NARROW)
def test_both_ends_are_near(event, delta):
    low, high = plans.interval(plans.plan(event), math.log(delta))
    assert 0.0 <= low <= high
    assert high - low <= max(1e-4, 1e-3 * high)
    if not any(isinstance(part, BoundedRangeEvent | Parallel) for part, _ in event.draws()):  # not families of pairs
        assert low <= price(event, method="renyi").epsilon(delta)


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10])
@pytest.mark.parametrize(
    "event",
    [
        gaussian(0.7),
        laplace(0.7),
        pure(0.7),
        PoissonSampled(gaussian(0.7), sampling_rate=0.01),
        PoissonSampled(laplace(0.7), sampling_rate=0.3),
        BoundedRangeEvent(epsilon=0.7, adjacency=A),
        ApproximateEvent(epsilon=0.7, delta=1e-12, adjacency=A),
        ProfileEvent(epsilons=(0.0, 0.5, 2.0), deltas=(0.3, 0.05, 1e-12), adjacency=A),
        DiscreteGaussianEvent(scale=2.0, sensitivity=1, adjacency=A),
    ],
    ids=lambda e: type(e).__name__,
)
def test_one_draw_is_its_own_exact_profile(event, delta):
    """A lattice bound of one draw against the inversion of its profile."""
    exact_low, exact_high = price(event, method="profile").epsilon_interval(delta)
    low, high = plans.interval(plans.plan(event), math.log(delta))
    assert low <= exact_high
    assert high >= exact_low


def test_what_is_revealed_for_certain_composes():
    """Ten draws that reveal all with probability 1e-8 each: below that sum no epsilon is enough, above it one is."""
    event = Repeated(ApproximateEvent(epsilon=0.1, delta=1e-8, adjacency=A), count=10)
    assert price(event).method == "pld"
    plain = price(Repeated(pure(0.1), count=10)).epsilon(1.5e-7 - 1e-7)
    quote = price(event).quote(1.5e-7)
    assert (quote.method, quote.certified) == ("pld", True)
    assert plain * (1.0 - 1e-6) <= quote.epsilon <= plain + 2e-3
    with pytest.raises(UnsupportedEvent, match="no finite epsilon"):
        price(event).epsilon(0.9e-7)


def test_a_profile_at_points_composes():
    """Its pair is a finite one, whose two-fold composition is summed here."""
    event = ProfileEvent(epsilons=(0.5,), deltas=(0.01,), adjacency=A)
    odds = (1.0 - 0.01) / (1.0 + math.exp(-0.5))
    atoms = [(math.inf, 0.01), (0.5, odds), (-0.5, odds * math.exp(-0.5))]

    def delta(epsilon):
        total = 0.0
        for one, p in atoms:
            for other, q in atoms:
                loss = one + other
                total += p * q * -math.expm1(epsilon - loss) if loss > epsilon else 0.0
        return total

    for epsilon in (0.05, 0.5, 0.9):
        found = price(Repeated(event, count=2)).epsilon(delta(epsilon))
        assert found >= epsilon * (1.0 - 1e-9)
        assert found <= epsilon * 1.01 + 1e-3
