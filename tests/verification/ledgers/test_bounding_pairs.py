"""Pairs that stand for an event from either side: below and above the exact profile at every threshold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    Repeated,
    ReplaceOneSampled,
    TruncatedLaplaceEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp, mpf
from ledgerwood.verification.ledgers.bounds import composed
from ledgerwood.verification.ledgers.bounds.events import Work, pair_of
from ledgerwood.verification.ledgers.bounds.moments import Moments
from ledgerwood.verification.ledgers.pairs.combined import Replaced

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
LOG_NEGLIGIBLE = -60.0


def leaves(adjacency):
    multipliers = st.floats(-1.0, 1.5).map(lambda x: 10.0**x)
    scales = st.floats(-0.5, 1.5).map(lambda x: 10.0**x)
    shifts, a = st.integers(1, 5), adjacency
    return st.one_of(
        multipliers.map(lambda s: GaussianEvent(noise_multiplier=s, adjacency=a)),
        multipliers.map(lambda s: LaplaceEvent(noise_multiplier=s, adjacency=a)),
        multipliers.map(lambda s: PureEvent(epsilon=1 / s, adjacency=a)),
        multipliers.map(lambda s: BoundedRangeEvent(epsilon=1 / s, adjacency=a)),
        st.builds(
            lambda s, b: TruncatedLaplaceEvent(noise_multiplier=s, bound=b, adjacency=a), scales, st.floats(0.6, 9)
        ),
        st.builds(lambda s, d: DiscreteLaplaceEvent(scale=s, sensitivity=d, adjacency=a), scales, shifts),
        st.builds(lambda s, d: DiscreteGaussianEvent(scale=s, sensitivity=d, adjacency=a), scales, shifts),
        multipliers.map(lambda s: ApproximateEvent(epsilon=1 / s, delta=1e-3, adjacency=a)),
        multipliers.map(lambda s: ProfileEvent(epsilons=(0.0, 1 / s, 2 / s), deltas=(0.4, 0.1, 0.02), adjacency=a)),
    )


def replaced_rows(kind):
    """Samples in which a row's presence costs from half of what its replacement does to six times as much."""
    return st.builds(
        lambda s, k, q: ReplaceOneSampled(
            kind(noise_multiplier=s, adjacency=R),
            add_remove=kind(noise_multiplier=s / k, adjacency=A),
            sampling_rate=q,
        ),
        st.floats(0.4, 20.0),
        st.floats(0.5, 6.0),
        st.floats(-3.0, -0.01).map(lambda x: 10.0**x),
    )


def events():
    rates = st.floats(-4.0, 0.0).map(lambda x: 10.0**x)
    single = st.one_of(leaves(A), st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), leaves(A), rates))
    fixed = st.builds(lambda e, m: FixedSizeSampled(e, sample_size=m, population=1000), leaves(R), st.integers(1, 999))
    replaced = st.one_of(*(replaced_rows(kind) for kind in (GaussianEvent, LaplaceEvent)))
    groups = st.builds(lambda a, b: Parallel((a, b), probabilities=(0.5, 0.25)), single, single)
    worst = st.builds(lambda a, b: Parallel.worst((a, b)), single, single)
    return st.one_of(single, single, fixed, replaced, groups, worst)


def profile(loss, log_mass, lost, epsilon):
    return lost + float(np.exp(log_mass) @ np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0))


def hulled(profile_at, x):
    """The greatest convex function below a profile on x >= 1, at one point; from above, within .5 %.

    Of a replaced row two bounds are known at each point. The truth is convex, their minimum is not: the verifier takes
    the convex function below it.
    """
    away = (x - 1.0) * 1.02 ** np.arange(1.0, 301.0)
    left, right = np.append(1.0, 1.0 + (x - 1.0) ** 2 / away[::-1]), 1.0 + away
    low, high = (np.array([profile_at(point) for point in points.tolist()]) for points in (left, right))
    chords = low[:, None] + (high - low[:, None]) * ((x - left)[:, None] / (right - left[:, None]))
    return min(profile_at(x), float(chords.min()))


def between(node, epsilon, remove, exact, bins):
    """The exact profile lies between the pairs of both sides, and between what they become on a lattice."""
    truths = {"lower": exact, "upper": exact}
    if isinstance(node, Replaced):  # whose profile is the same in both directions
        hull = hulled(lambda x: float(node.positive_part(mpf(1), -mpf(x))), math.exp(epsilon))
        truths["upper"] = min(exact, (1.0 - 5e-3) * hull)
    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        exact = truths[side]
        pair = pair_of(node, LOG_NEGLIGIBLE, side, Work(bins=bins))
        own = pair if remove else pair.mirrored()
        found = profile(own.loss, own.log_p, own.lost_p, epsilon)
        assert sign * (found - exact) <= 1e-11 * exact + 1e-20, side
        draws, lost = composed._directed([(pair, 1)], LOG_NEGLIGIBLE, side, remove)
        for step in (0.3, 0.01):
            laid = composed._laid(draws, step * max(draws.deviation(0.0), 1e-9), side)
            laid = laid.on(step * max(draws.deviation(0.0), 1e-9))
            on_lattice = profile(laid.loss, laid.log_mass, lost, epsilon)
            assert sign * (on_lattice - exact) <= 1e-9 * exact + 1e-18, (side, step)


@pytest.mark.slow  # the verifier bounds many plans from both sides
@settings(max_examples=60, deadline=None)
@given(
    events(),
    st.lists(st.floats(-3.0, 1.0).map(lambda x: 10.0**x), min_size=3, max_size=3),
    st.booleans(),
    st.sampled_from([64, 1024]),
)
def test_the_exact_profile_lies_between_both_sides(event, epsilons, remove, bins):
    with mp.workdps(60):
        node = _pairs.parse(to_json(event))
        for epsilon in epsilons:
            x = mp.exp(mpf(epsilon))
            exact = float(node.positive_part(mpf(1), -x) if remove else node.positive_part(-x, mpf(1)))
            between(node, epsilon, remove, exact, bins)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.05, 2.0), min_size=2, max_size=4),
    st.floats(0.01, 0.99),
    st.floats(0.01, 2.0),
    st.booleans(),
)
def test_a_sampled_composition_is_enumerated(losses, rate, epsilon, remove):
    """Every combination of the answers of two to four randomised responses on one sample."""
    event = PoissonSampled(Composed(tuple(PureEvent(epsilon=e, adjacency=A) for e in losses)), sampling_rate=rate)
    exact, t = mpf(0), mp.exp(mpf(epsilon))
    with mp.workdps(60):
        for signs in itertools.product((1, -1), repeat=len(losses)):
            q = mpf(1)
            for sign, e in zip(signs, losses, strict=True):
                q *= 1 / (1 + mp.exp(sign * mpf(e)))
            r = 1 - mpf(rate) + mpf(rate) * mp.exp(sum(s * mpf(e) for s, e in zip(signs, losses, strict=True)))
            exact += q * (max(r - t, 0) if remove else max(1 - t * r, 0))
        between(_pairs.parse(to_json(event)), epsilon, remove, float(exact), 1024)


@pytest.mark.slow  # the verifier bounds many plans from both sides
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.02, 1.0), st.integers(1, 40)), min_size=1, max_size=2),
    st.floats(0.01, 0.99),
    st.floats(0.01, 3.0),
    st.booleans(),
)
def test_a_sampled_repetition_is_enumerated(parts, rate, epsilon, remove):
    """Counts of answers are binomial: up to forty randomised responses of each of two kinds on one sample."""
    event = PoissonSampled(
        Composed(tuple(Repeated(PureEvent(epsilon=e, adjacency=A), count=n) for e, n in parts)), sampling_rate=rate
    )
    with mp.workdps(60):
        outputs = [(mpf(0), mpf(1))]  # the loss and its mass without the unit
        for e, n in parts:
            heavy = 1 / (1 + mp.exp(-mpf(e)))
            own = [((n - 2 * k) * mpf(e), math.comb(n, k) * heavy**k * (1 - heavy) ** (n - k)) for k in range(n + 1)]
            outputs = [(a + b, p * q) for a, p in outputs for b, q in own]
        exact, t = mpf(0), mp.exp(mpf(epsilon))
        for loss, mass in outputs:
            r = 1 - mpf(rate) + mpf(rate) * mp.exp(loss)
            exact += mass * (max(r - t, 0) if remove else max(1 - t * r, 0))
        between(_pairs.parse(to_json(event)), epsilon, remove, float(exact), 1024)


@pytest.mark.slow_after(5)  # the verifier bounds many plans from both sides
@pytest.mark.parametrize("kind", [GaussianEvent, LaplaceEvent])
@pytest.mark.parametrize("share", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("rate", [0.003, 0.3, 0.95])
def test_a_replaced_row_s_bound_is_above_a_real_mechanism_of_three_distributions(kind, share, rate):
    """Old row, new row and neither at +d/2, -d/2 and 0, both samples integrated; and the mixture at a pure epsilon."""
    shift = 1.5
    event = ReplaceOneSampled(
        kind(noise_multiplier=1 / shift, adjacency=R),
        add_remove=kind(noise_multiplier=1 / (shift * share), adjacency=A),
        sampling_rate=rate,
    )
    law = stats.norm if kind is GaussianEvent else stats.laplace
    x = np.linspace(-14.0, 14.0, 200_001)
    m0, m1 = (rate * law.pdf(x - side * shift / 2) + (1 - rate) * law.pdf(x) for side in (1, -1))
    with mp.workdps(60):
        node = _pairs.parse(to_json(event))
        whole = node.replaced.pure_epsilon()
        assert node.pure_epsilon() <= whole  # M0 - e^whole M1 = q (A - e^whole B) + (1 - q) (1 - e^whole) N <= 0
        for epsilon in (0.0, 0.01, 0.3, 1.0):
            truth = float(integrate.simpson(np.maximum(m0 - math.exp(epsilon) * m1, 0.0), x=x))
            stated = float(node.positive_part(mpf(1), -mp.exp(mpf(epsilon))))
            own = float(node.replaced.positive_part(mpf(1), -mp.exp(mpf(epsilon))))
            assert truth <= stated * (1 + 1e-6) + 1e-7
            assert stated <= rate * own * (1 + 1e-12)


@pytest.mark.slow_after(3)  # the verifier bounds many plans from both sides
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 5.0, 40.0, 100.0])
@pytest.mark.parametrize("rate", [1.0, 0.1, 1e-4])
@pytest.mark.parametrize("order", [1.0001, 1.5, 8.0, 1e3])
def test_a_bounded_range_s_moments_have_both_bounds(epsilon, rate, order):
    """Against every one of two hundred of its pairs, in sixty digits."""
    event = BoundedRangeEvent(epsilon=epsilon, adjacency=A)
    node = _pairs.parse(to_json(event if rate == 1.0 else PoissonSampled(event, sampling_rate=rate)))
    with mp.workdps(60):
        e, q = mpf(epsilon), mpf(rate)
        for p in (order, 1 - order):
            best = mpf(0)
            for k in range(1, 200):
                t = e * k / 200
                light = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
                ratios = (1 - q + q * mp.exp(t), light), (1 - q + q * mp.exp(t - e), 1 - light)
                best = max(best, mp.log(sum(m * r ** mpf(p) for r, m in ratios)))
            low, high = Moments().log_moment(node, p)
            assert low <= high
            assert best <= high
            assert high <= low * 1.001 + 1e-12
            if epsilon < 20:  # two hundred pairs are dense enough
                assert low <= best * (1 + mpf("0.03"))


@pytest.mark.parametrize("mu", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_gaussian_s_masses_are_right_to_their_last_digits(mu, side):
    pair = pair_of(_pairs.Gaussian(mpf(mu) ** 2), -740.0, side, Work(bins=256))
    missing = pair.lost_p if side == "upper" else 0.0
    assert math.fsum(np.exp(pair.log_p)) + missing == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(np.exp(pair.log_q)) + missing == pytest.approx(1.0, abs=1e-12)
