"""How near the two ends come, over plans of all kinds; and what is true of both."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

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
    TruncatedLaplaceEvent,
    price,
)
from ledgerwood.accounting.costs.losses import plans
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
    (training(1e-6, 10**6, 1.0), 1e-8),
    (training(0.5, 10**6, 2.0), 1e-3),
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


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(("event", "delta"), NARROW)
def test_both_ends_are_near(event, delta):
    low, high = plans.interval(plans.plan(event), math.log(delta))
    assert 0.0 <= low <= high
    assert high - low <= max(1e-4, 1e-3 * high)
    if not any(isinstance(part, BoundedRangeEvent | Parallel) for part, _ in event.draws()):  # not families of pairs
        assert low <= price(event, method="renyi").epsilon(delta)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_few_hits_of_little_noise_have_a_near_lower_end():
    """The truth by inversion of the losses' moment generating function, to 1e-5."""
    low, high = plans.interval(plans.plan(training(1e-4, 10**4, 0.7)), math.log(1e-10))
    assert 0.987 <= low <= 0.98795 + 1e-5
    assert 0.98795 - 1e-5 <= high <= 0.9886


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


def revealing(epsilon, delta):
    return ApproximateEvent(epsilon=epsilon, delta=delta, adjacency=A)


def exact_delta(epsilon, delta, rate, count, at):
    """The larger direction of a composed sample of randomised responses that reveal all with probability delta."""
    e, d, q = mp.exp(mpf(epsilon)), mpf(delta), mpf(rate)
    absent = [mpf(0), (1 - d) / (1 + e), (1 - d) * e / (1 + e), d]
    present = [(1 - q) * a + q * p for a, p in zip(absent, reversed(absent), strict=True)]
    totals = []
    for p, a in ((present, absent), (absent, present)):
        total = mpf(0)
        for picked in itertools.combinations_with_replacement(range(4), count):
            times = [picked.count(i) for i in range(4)]
            ways = mp.factorial(count) / mp.fprod(mp.factorial(n) for n in times)
            one, other = (mp.fprod(x**n for x, n in zip(law, times, strict=True)) for law in (p, a))
            total += ways * max(one - mp.exp(at) * other, 0)
        totals.append(total)
    return max(totals)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.02, 3.0), st.floats(1e-12, 0.3), st.sampled_from([1.0, 0.9, 0.3, 0.05]), st.integers(2, 5),
    st.floats(1.01, 30.0),
)  # fmt: skip
def test_infinite_losses_count_from_below(epsilon, delta, rate, count, ratio):
    """Never above what is enumerated, and next to it where nothing is finer than the lattice."""
    event = revealing(epsilon, delta)
    event = PoissonSampled(event, sampling_rate=rate) if rate < 1.0 else event
    wanted = ratio * count * rate * delta
    if wanted >= 0.5:
        return
    low, high = plans.interval(plans.plan(Repeated(event, count=count)), math.log(wanted))
    with mp.workdps(40):
        assert low == 0.0 or exact_delta(epsilon, delta, rate, count, low) >= wanted
        assert high == math.inf or exact_delta(epsilon, delta, rate, count, high) <= wanted
        for at in (0.0, 0.5 * epsilon, 1.3 * epsilon, 4.0 * epsilon, count * epsilon + 5.0):
            below = plans.log_delta(plans.plan(Repeated(event, count=count)), at, above=False)
            exact = exact_delta(epsilon, delta, rate, count, at)
            assert mp.exp(below) <= exact
            assert mp.exp(below) >= 0.97 * count * rate * delta * (1 - delta * rate) ** count


@pytest.mark.slow_after(3)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (Repeated(revealing(0.5, 1e-6), count=4), 1e-5),
        (Repeated(revealing(0.1, 1e-8), count=1000), 1.5e-5),
        (Repeated(revealing(0.1, 1e-12), count=10**6), 1.5e-6),
        (Repeated(TruncatedLaplaceEvent(noise_multiplier=1.0, bound=20.0, adjacency=A), count=1000), 1e-5),
        (
            Repeated(
                PoissonSampled(TruncatedLaplaceEvent(noise_multiplier=1.0, bound=20.0, adjacency=A), sampling_rate=0.1),
                count=10,
            ),
            1e-6,
        ),
        (Repeated(ProfileEvent(epsilons=(0.1, 0.5, 1.0), deltas=(0.05, 0.01, 1e-9), adjacency=A), count=50), 1e-6),
    ],
)
def test_plans_with_infinite_losses_have_near_ends(event, delta):
    low, high = plans.interval(plans.plan(event), math.log(delta))
    assert 0.0 < low <= high <= low + max(1e-4, 1e-3 * high)


def test_many_revealing_draws_enclose_a_binomial_sum():
    """Nothing is revealed with probability (1 - delta)^k; else responses compose (Kairouz, Oh and Viswanath 2015)."""
    count, delta, wanted = 1000, 1e-8, 1.5e-5
    low, high = plans.interval(plans.plan(Repeated(revealing(0.1, delta), count=count)), math.log(wanted))
    with mp.workdps(40):
        up, kept = 1 / (1 + mp.exp(-mpf(0.1))), (1 - mpf(delta)) ** count

        def exact(at):
            losses = ((k, mpf(0.1) * (2 * k - count)) for k in range(count + 1) if 0.1 * (2 * k - count) > at)
            terms = (mp.binomial(count, k) * up**k * (1 - up) ** (count - k) * -mp.expm1(at - x) for k, x in losses)
            return 1 - kept + kept * mp.fsum(terms)

        assert exact(low) >= wanted >= exact(high)


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
