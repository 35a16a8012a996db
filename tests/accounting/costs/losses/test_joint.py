"""Samples and groups of compositions against enumeration, direct integrals and closed forms."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import integrate

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    Direction,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    Repeated,
    ReplaceOneSampled,
    ZeroConcentratedEvent,
    price,
)
from ledgerwood.accounting.costs.losses import joint, plans
from ledgerwood.accounting.costs.losses import joint as lower
from ledgerwood.errors import UnsupportedEvent

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def gaussian(multiplier, adjacency=A):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=adjacency)


def laplace(multiplier, adjacency=A):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=adjacency)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


def as_joint(event):
    return joint.Joint(event, event.pure_epsilon(), plans._joint_above, plans._joint_sums_below)


def pure_losses(epsilons):
    """Losses and masses under P of randomised responses together: every combination of answers."""
    with mp.workdps(30):
        found = []
        for signs in itertools.product((1, -1), repeat=len(epsilons)):
            loss = mp.fsum(sign * mpf(e) for sign, e in zip(signs, epsilons, strict=True))
            mass = mp.fprod(1 / (1 + mp.exp(-sign * mpf(e))) for sign, e in zip(signs, epsilons, strict=True))
            found.append((loss, mass))
        return found


def sampled_delta(losses, rate, epsilon, direction):
    """The definition: sums over outputs of P' = (1 - q) Q + q P against Q, with Q = P e^{-loss}."""
    with mp.workdps(30):
        x, q, total = mp.exp(mpf(epsilon)), mpf(rate), mpf(0)
        for loss, mass in losses:
            without = mass * mp.exp(-loss)
            within = (1 - q) * without + q * mass
            first, second = (within, without) if direction is Direction.REMOVE else (without, within)
            total += max(first - x * second, mpf(0))
        return total


@pytest.mark.slow_after(2)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("epsilons", [(0.3, 0.5, 0.3), (1.0, 1.0), (0.1,) * 8, (2.0, 0.01, 0.7)])
@pytest.mark.parametrize("rate", [1e-4, 0.2, 0.9])
def test_samples_of_pure_compositions_enclose_the_sum_over_all_answers(epsilons, rate):
    losses = pure_losses(epsilons)
    event = sampled(Composed(tuple(pure(e) for e in epsilons)), rate)
    found = plans.plan(event)
    for share in (0.0, 0.2, 0.5, 0.8, 0.97):
        at = share * event.pure_epsilon()
        exact = max(sampled_delta(losses, rate, at, direction) for direction in Direction)
        high = plans.log_delta(found, at, above=True)
        low = plans.log_delta(found, at, above=False)
        assert math.exp(low) <= exact * (1 + 1e-14)
        assert exact <= math.exp(high) * (1 + 1e-14)
        assert math.exp(high) <= exact * (1 + 1e-6) + 1e-9 * rate
        # From below the lattice counts: losses of 2, .01 and .7 do not lie on one.
        assert math.exp(low) >= exact * (1 - (0.05 if 0.01 in epsilons else 1e-6)) - 1e-9 * rate


def after_sampling(losses, rate):
    """Losses and masses under P' = (1 - q) Q + q P."""
    with mp.workdps(30):
        ratios = [(1 - mpf(rate)) * mp.exp(-loss) + mpf(rate) for loss, _ in losses]  # dP'/dP
        return [(mp.log(ratio) + loss, mass * ratio) for (loss, mass), ratio in zip(losses, ratios, strict=True)]


def composed(*draws):
    with mp.workdps(30):
        return [
            (mp.fsum(loss for loss, _ in parts), mp.fprod(mass for _, mass in parts))
            for parts in itertools.product(*draws)
        ]


@pytest.mark.slow_after(2)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(("first", "second", "rates"), [(1.0, 0.6, (0.3, 0.1)), (3.0, 0.2, (0.02, 0.5))])
@pytest.mark.parametrize("count", [1, 3])
def test_samples_inside_samples_enclose_each_direction(first, second, rates, count):
    """A sample's two directions differ: both of the inner pair are needed for each of the outer one."""
    inner_rate, rate = rates
    inner = Composed((Repeated(sampled(pure(first), inner_rate), count=2), pure(second)))
    event = sampled(inner, rate)
    dense = after_sampling(pure_losses((first,)), inner_rate)
    losses = after_sampling(composed(dense, dense, pure_losses((second,))), rate)
    whole = composed(*[losses] * count)
    found = plans.plan(Repeated(event, count=count))
    draw = found.parts[0][0]
    for share in (0.0, 0.1, 0.4, 0.7, 0.95):
        at = share * count * event.pure_epsilon()
        exact = {direction: sampled_delta(whole, 1.0, at, direction) for direction in Direction}
        if count == 1:
            for direction in Direction:
                above = math.exp(draw.log_profile(np.array([at]), direction=direction)[0])
                below = math.exp(lower.log_profile(draw, np.array([at]), direction)[0])
                assert below <= exact[direction] * (1 + 1e-13)
                assert exact[direction] <= above * (1 + 1e-13)
                assert above <= exact[direction] * (1 + 1e-4) + 1e-8
        high = math.exp(plans.log_delta(found, at, above=True))
        low = math.exp(plans.log_delta(found, at, above=False))
        assert low <= max(exact.values()) * (1 + 1e-13)
        assert max(exact.values()) <= high * (1 + 1e-13)


def two_laplace(t):
    """The profile of two Laplace releases of multiplier 1: one's profile integrated over the other's losses."""

    def one(s):
        return max(0.0, -math.expm1((s - 1.0) / 2.0) if s >= -1.0 else -math.expm1(s))

    edges = sorted({-1.0, 1.0, min(max(t - 1.0, -1.0), 1.0), min(max(t + 1.0, -1.0), 1.0)})
    inner = sum(
        integrate.quad(lambda s: 0.25 * math.exp((s - 1.0) / 2.0) * one(t - s), a, b, epsabs=1e-14, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(edges)
    )
    return 0.5 * one(t - 1.0) + 0.5 * math.exp(-1.0) * one(t + 1.0) + inner


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.7])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
def test_a_sample_of_two_laplace_releases_encloses_its_integral(rate, delta):
    low, high = price(sampled(Repeated(laplace(1.0), count=2), rate)).epsilon_interval(delta)

    def exact(epsilon):
        return rate * two_laplace(math.log1p(math.expm1(epsilon) / rate))

    if low > 0.0:
        assert exact(low) >= delta * (1 - 1e-9)
    assert exact(high) <= delta * (1 + 1e-9)
    assert high - low <= 1e-5 * high


@pytest.mark.slow_after(1)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("count", [2, 6, 100])
@pytest.mark.parametrize("multiplier", [0.7, 3.0, 40.0])
def test_gaussian_compositions_composed_enclose_their_closed_profile(multiplier, count):
    event = Repeated(gaussian(multiplier), count=count)
    opened = as_joint(event)
    mu = event.mu()
    t = np.concatenate(([0.0], np.linspace(1e-4, 0.5 * mu * mu + 9.0 * mu, 400)))
    for inner, exact_event in [(opened, event), (sampled(opened, 0.01), sampled(event, 0.01))]:
        for direction in Direction:
            exact = exact_event.log_profile(t, direction=direction)
            above = inner.log_profile(t, direction=direction)
            below = lower.log_profile(inner, t, direction)
            assert (below <= exact).all()
            assert (exact <= above).all()
            seen = exact > math.log(1e-15)
            assert (above[seen] - exact[seen]).max() < 2e-3
            assert (exact[seen] - below[seen]).max() < 5e-3


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_laws_of_too_many_points_are_coarsened(monkeypatch):
    event = Composed((gaussian(2.0), gaussian(1.5)))
    monkeypatch.setattr(plans, "_MOST_JOINT_POINTS", 256)
    found = plans.plan(event)
    t = np.linspace(0.0, 4.0, 100)
    exact = event.log_profile(t, direction=Direction.REMOVE)
    for above in (True, False):
        sums = plans._joint_sums(found, Direction.REMOVE, above)
        assert max(len(item.values) for item in sums) <= 600
        for item in sums:
            value = item.log_profile(t)
            assert ((exact <= value) if above else (value <= exact)).all()


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_the_shared_sample_is_the_dear_one():
    """Six Gaussians of multiplier 3 on one sample; then with a Laplace release, which can only cost more."""
    alone = sampled(Repeated(gaussian(3.0), count=6), 0.1)
    assert price(alone).method == "profile"
    exact = price(alone).epsilon(1e-5)
    assert exact == pytest.approx(1.065, abs=1e-3)
    low, high = plans.interval(plans.plan(sampled(as_joint(alone.event), 0.1)), math.log(1e-5))
    assert low <= exact <= high <= low * (1 + 1e-4)
    more = price(sampled(Composed((*[gaussian(3.0)] * 6, laplace(10.0))), 0.1))
    low, high = more.epsilon_interval(1e-5)
    assert exact < low <= high <= low * (1 + 1e-4)
    assert high < price(sampled(Composed((*[gaussian(3.0)] * 6, gaussian(10.0))), 0.1)).epsilon(1e-5) + 0.02
    assert more.quote(1e-5).method == "pld"
    fresh = price(Repeated(sampled(gaussian(3.0), 0.1), count=6)).epsilon(1e-5)
    assert fresh == pytest.approx(0.353, abs=1e-3)


def test_a_sample_of_gaussians_alone_stays_exact():
    event = sampled(Composed((gaussian(1.0), gaussian(0.5))), 0.01)
    assert price(event).method == "profile"
    one = sampled(gaussian(1.0 / math.sqrt(5.0)), 0.01)
    assert price(event).epsilon(1e-5) == pytest.approx(price(one).epsilon(1e-5), rel=1e-12)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_many_fresh_samples_of_a_mixed_composition():
    event = Repeated(sampled(Composed((laplace(1.0), gaussian(1.0))), 0.01), count=1000)
    low, high = price(event).epsilon_interval(1e-5)
    assert high - low <= 3e-4 * high
    # The Laplace release of multiplier 1 costs less than a Gaussian of multiplier .5, and more than none.
    assert price(Repeated(sampled(gaussian(1.0), 0.01), count=1000)).epsilon_interval(1e-5)[0] < low
    dear = sampled(Composed((gaussian(0.5), gaussian(1.0))), 0.01)
    assert high < price(Repeated(dear, count=1000)).epsilon(1e-5)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_a_sample_of_a_sample_is_one_sample():
    inner = Composed((laplace(1.0), gaussian(1.5)))
    once = price(sampled(inner, 0.02)).epsilon_interval(1e-6)
    twice = price(sampled(sampled(inner, 0.2), 0.1)).epsilon_interval(1e-6)
    assert max(once[0], twice[0]) <= min(once[1], twice[1])


def test_all_units_in_the_sample_is_no_sample():
    inner = Composed((laplace(1.0), gaussian(1.5)))
    one = price(inner).epsilon_interval(1e-6)
    other = price(sampled(inner, 1.0)).epsilon_interval(1e-6)
    assert max(one[0], other[0]) <= min(one[1], other[1])


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_groups_of_compositions_mix_their_profiles():
    """Of two groups with the same composition each unit is in one: the composition itself."""
    inner = Composed((laplace(2.0), gaussian(1.5)))
    whole = price(inner).epsilon_interval(1e-6)
    for groups in (Parallel((inner, inner), probabilities=(0.25, 0.75)), Parallel.worst((inner, laplace(2.0)))):
        found = price(groups).epsilon_interval(1e-6)
        assert max(whole[0], found[0]) <= min(whole[1], found[1])
    half = price(Parallel((inner,), probabilities=(0.5,)))
    assert half.delta(1.0) == pytest.approx(0.5 * price(inner).delta(1.0), rel=1e-3)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_fixed_size_samples_of_compositions_follow_their_formula():
    inner = Composed((laplace(1.0, R), gaussian(1.5, R)))
    event = FixedSizeSampled(inner, sample_size=10, population=100)
    at = 0.3
    within = price(inner).delta(math.log1p(math.expm1(at) / 0.1))
    assert price(event).delta(at) == pytest.approx(0.1 * within, rel=1e-3)
    low, high = price(Repeated(event, count=20)).epsilon_interval(1e-5)
    assert 0.0 < low <= high <= low * (1 + 1e-3)


def test_poisson_samples_under_replace_one_follow_their_formula():
    inner, present = Composed((laplace(1.0, R), gaussian(1.0, R))), Composed((laplace(2.0), gaussian(2.0)))
    event = ReplaceOneSampled(inner, add_remove=present, sampling_rate=0.1)
    at = 0.3
    within = math.log1p(math.expm1(at) / 0.1)
    share = math.exp(at - within)
    exact = 0.1 * ((1.0 - share) * price(present).delta(within) + share * price(inner).delta(within))
    assert price(event).delta(at) == pytest.approx(exact, rel=1e-3)


leaves = st.one_of(
    st.floats(0.3, 30.0).map(gaussian),
    st.floats(0.3, 30.0).map(laplace),
    st.floats(0.01, 3.0).map(pure),
    st.floats(0.01, 3.0).map(lambda x: BoundedRangeEvent(epsilon=x, adjacency=A)),
    st.builds(lambda x, q: sampled(gaussian(x), q), st.floats(0.5, 10.0), st.floats(0.01, 0.99)),
)
compositions = st.builds(
    lambda a, b, n: Composed((Repeated(a, count=n), b)), leaves, leaves, st.integers(1, 20)
).filter(lambda event: not all(isinstance(e, GaussianEvent) for e, _ in event.draws()))


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=8, deadline=None)
@given(compositions, st.floats(1e-3, 0.9), st.sampled_from([1e-3, 1e-6, 1e-10]))
def test_lower_ends_are_lower_and_a_larger_sample_costs_more(event, rate, delta):
    low, high = price(sampled(event, rate)).epsilon_interval(delta)
    less = price(sampled(event, 0.5 * rate)).epsilon_interval(delta)
    assert 0.0 <= less[0] <= high
    assert less[0] <= less[1] * (1 + 1e-12)
    assert low <= high
    # A lower end is that of one dominating pair. A bounded-range choice has many, and without a sample its Renyi price,
    # the worst of them at each order, may be below what the pair that dominates them all has.
    if not any(isinstance(part, BoundedRangeEvent) for part, _ in event.draws()):
        assert low <= price(event).epsilon(delta) * (1 + 1e-9)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@settings(max_examples=8, deadline=None)
@given(compositions)
def test_bounds_on_the_profile_of_a_composition_are_convex_and_in_order(event):
    opened = as_joint(event)
    t = np.concatenate(([0.0], np.geomspace(1e-6, 30.0, 300)))
    for direction in Direction:
        above = opened.log_profile(t, direction=direction)
        below = opened.log_profile_below(t, direction)
        assert (below <= above).all()
        assert (np.diff(above[np.isfinite(above)]) <= 1e-12).all()
        chords = opened.above(event)[direction is Direction.ADD]
        with np.errstate(over="ignore"):
            slopes = np.diff(chords.values) / (np.expm1(np.diff(chords.losses)) * np.exp(chords.losses[:-1]))
        assert (np.diff(slopes) >= -1e-9 * np.abs(slopes[:-1])).all()
    remove, add = opened.above(event)
    assert remove.values[0] == add.values[0]
    first = [(c.values[0] - c.values[1]) / math.expm1(c.losses[1]) for c in (remove, add)]
    assert 1.0 - remove.values[0] - sum(first) >= -1e-9


def test_refusals():
    zcdp = ZeroConcentratedEvent(rho=0.5, adjacency=A)
    with pytest.raises(UnsupportedEvent):
        price(sampled(Composed((zcdp, gaussian(1.0))), 0.1))
    mixed = sampled(Composed((laplace(1.0), gaussian(1.0))), 0.1)
    with pytest.raises(UnsupportedEvent, match="no exact profile"):
        price(mixed, method="profile")
    nine = Composed(tuple(sampled(Composed((laplace(1.0 + k), gaussian(1.0))), 0.1) for k in range(9)))
    with pytest.raises(UnsupportedEvent):
        price(nine)


def test_an_infinite_loss_stays_in_the_sample():
    revealing = ApproximateEvent(epsilon=0.5, delta=1e-4, adjacency=A)
    event = sampled(Composed((revealing, laplace(2.0))), 0.1)
    assert price(event).delta(3.0) >= 1e-5
    assert price(event).delta(3.0) <= 1.001e-5


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_a_price_needs_little_memory():
    event = Repeated(sampled(Composed((laplace(1.3), gaussian(1.7))), 0.013), count=1000)
    tracemalloc.start()
    price(event).epsilon(1e-5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def tree(epsilon):
    """Six choices and noisy leaves."""
    choices = Repeated(BoundedRangeEvent(epsilon=epsilon / 12, adjacency=A), count=6)
    return Composed((choices, laplace(2.0 / epsilon)))


def geometric(k):
    return tuple(0.1 * 0.9**place / (1 - 0.9**k) for place in range(k))


@pytest.mark.slow_after(1)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("count", [1, 3, 20])
def test_an_ensemble_of_equal_groups_that_everybody_enters_costs_one_tree(count):
    groups = Parallel((tree(1.0),) * 50, probabilities=geometric(50))
    ensembles, trees = price(Repeated(groups, count=count)), price(Repeated(tree(1.0), count=count))
    assert ensembles.epsilon(0.0) == trees.epsilon(0.0) == pytest.approx(count, rel=1e-15)
    assert trees.epsilon(1e-5) * (1 - 1e-4) <= ensembles.epsilon(1e-5) <= trees.epsilon(1e-5) * (1 + 1e-4)


def test_groups_that_few_enter_cost_less_and_never_less_than_their_mixture():
    """Groups of randomised responses, composed: against the sum over all groups and answers."""
    inner = Composed((pure(0.5), pure(0.25), pure(0.25)))
    event = Repeated(Parallel((inner, pure(1.5)), probabilities=(0.3, 0.2)), count=2)
    with mp.workdps(30):
        single = [(loss, mass * mpf(0.3)) for loss, mass in pure_losses((0.5, 0.25, 0.25))]
        single += [(loss, mass * mpf(0.2)) for loss, mass in pure_losses((1.5,))] + [
            (mpf(0), mpf(1) - mpf(0.3) - mpf(0.2))
        ]
        losses = composed(single, single)
        for at in (0.0, 0.4, 1.0, 1.7, 2.4):
            exact = mp.fsum(mass * max(1 - mp.exp(at - loss), 0) for loss, mass in losses)
            assert exact <= price(event).delta(at) <= exact * (1 + 1e-3)


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_different_groups_are_composed_once_each():
    groups = Parallel(tuple(tree(1.0 + place / 64) for place in range(18)), probabilities=(1 / 18,) * 18)
    plans._joint_above.kept.cache_clear()
    found = price(Repeated(groups, count=2)).epsilon(1e-5)
    assert plans._joint_above.kept.cache_info().misses == 18
    assert price(Repeated(tree(1.0), count=2)).epsilon(1e-5) < found
    assert found < price(Repeated(tree(1.0 + 17 / 64), count=2)).epsilon(1e-5)


def test_a_group_of_very_little_noise_has_a_price_without_overflow():
    loud = Composed((laplace(2.0**-8), gaussian(3.0)))
    event = Parallel((loud, laplace(1.0)), probabilities=(0.125, 0.5))
    assert 250.0 < price(event).epsilon(1e-3) < 256.0 + price(gaussian(3.0)).epsilon(1e-3)
