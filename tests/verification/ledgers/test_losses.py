"""The verifier's composed losses: the truth lies between both bounds, and they are near to it."""

import math

import numpy as np
import pytest
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
    RandomAllocation,
    Repeated,
    SkellamEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp
from ledgerwood.verification.ledgers.bounds.points import point_bounds

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


def bounds(event, delta):
    """Both bounds of epsilon at delta."""
    with mp.workdps(60):
        found = point_bounds(_pairs.parse(to_json(event)), delta)
    assert found.lower <= found.upper
    return found.lower, found.upper


def holds(event, epsilon, delta, share=1e-4):
    """The truth lies between the bounds, and both are near to it; a hair is left to the truth's own rounding."""
    low, high = bounds(event, delta)
    assert epsilon * (1 - share) <= low <= epsilon * (1 + 1e-9)
    assert epsilon * (1 - 1e-9) <= high <= epsilon * (1 + share)


PLANS = [
    # References: inversion of the losses' moment generating function, six decimals (the last: 3.5175124 +- 1e-6).
    (Repeated(sampled(gaussian(1.0), 0.01), count=10**4), 1e-5, 6.187712),
    (Repeated(sampled(gaussian(1.1), 256 / 60000), count=14040), 1e-5, 2.379555),
    (Repeated(sampled(gaussian(2.0), 0.001), count=10**6), 1e-6, 2.420858),
    (Repeated(sampled(gaussian(1.0), 1e-4), count=10**7), 1e-6, 1.838200),
    (Repeated(sampled(gaussian(20.0), 0.5), count=100), 1e-5, 0.931048),
    (Repeated(sampled(gaussian(4.0), 0.01), count=10**4), 1e-5, 0.946867),
    (Repeated(sampled(gaussian(0.6), 0.004), count=100), 1e-5, 2.292315),
    (Repeated(sampled(gaussian(0.6), 0.001), count=100), 1e-5, 0.779594),
    (
        Composed((
            Repeated(gaussian(5.0), count=10),
            Repeated(laplace(10.0), count=10),
            Repeated(sampled(gaussian(1.0), 0.01), count=1000),
        )),
        1e-5,
        3.517512,
    ),
]  # fmt: skip


@pytest.mark.slow  # the verifier composes the losses of many plans from both sides
@pytest.mark.parametrize(("event", "delta", "reference"), PLANS)
def test_both_bounds_are_within_a_ten_thousandth(event, delta, reference):
    low, high = bounds(event, delta)
    assert reference * (1 - 1e-4) < low <= reference + 2e-6
    assert reference - 2e-6 <= high < reference * (1 + 1e-4)


@pytest.mark.slow  # the verifier composes the losses of many plans from both sides
@pytest.mark.parametrize(
    ("epsilon", "count", "at"), [(0.1, 1000, 19.0), (0.1, 1000, 30.0), (1.0, 7, 2.5), (0.7, 3, 0.3)]
)
def test_randomised_responses_are_binomial(epsilon, count, at):
    k = np.arange(count + 1)
    heavy = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = float(stats.binom.pmf(k, count, heavy) @ np.maximum(-np.expm1(at - (2 * k - count) * epsilon), 0.0))
    holds(Repeated(PureEvent(epsilon=epsilon, adjacency=A), count=count), at, exact, 1e-6)


def test_two_sampled_laplace_draws_take_the_direction_of_an_addition():
    """The bracket of delta by independent quadrature; a removal alone has .37518."""
    event = Repeated(sampled(laplace(1.0), 0.9), count=2)
    assert bounds(event, 0.39167)[0] <= 0.1001
    assert bounds(event, 0.3916842 + 1e-6)[0] <= 0.1 <= bounds(event, 0.39167)[1]


def test_a_gaussian_and_a_laplace_draw_are_an_integral():
    mu, epsilon = 2.0, 4.0

    def gaussian_profile(e):
        return stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)

    inner = integrate.quad(lambda x: 0.5 * math.exp(x - 1) * gaussian_profile(epsilon - (2 * x - 1)), 0.0, 1.0)[0]
    exact = 0.5 * gaussian_profile(epsilon - 1) + 0.5 * math.exp(-1) * gaussian_profile(epsilon + 1) + inner
    holds(Composed((gaussian(1 / mu), laplace(1.0))), epsilon, exact)


def test_what_reveals_everything_does_so_once_a_draw():
    event = Repeated(ApproximateEvent(epsilon=0.1, delta=1e-7, adjacency=A), count=20)
    revealed = -math.expm1(20 * math.log1p(-1e-7))
    assert bounds(event, revealed * (1 - 1e-9)) == (math.inf, math.inf)
    assert 1.9 < bounds(event, revealed * 1.1)[0] <= bounds(event, revealed * 1.1)[1] <= 2.0 + 1e-6


def exact_two_draws(event, epsilon):
    """Two draws of a discrete pair, added up term by term."""
    scale, shift = event.scale, event.sensitivity
    z = np.arange(-200, 201)
    if isinstance(event, DiscreteLaplaceEvent):
        q, p = (np.exp(-abs(z - centre) / scale) for centre in (0, shift))
    else:
        q, p = (np.exp(-((z - centre) ** 2) / (2 * scale**2)) for centre in (0, shift))
    q, p = q / q.sum(), p / p.sum()
    return float(np.maximum(np.outer(p, p) - math.exp(epsilon) * np.outer(q, q), 0.0).sum())


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (DiscreteLaplaceEvent(scale=2.0, sensitivity=1, adjacency=A), 0.3),
        (DiscreteLaplaceEvent(scale=2.5, sensitivity=3, adjacency=A), 1.1),
        (DiscreteGaussianEvent(scale=1.5, sensitivity=1, adjacency=A), 1.7),
        (DiscreteGaussianEvent(scale=4.0, sensitivity=3, adjacency=A), 2.0),
    ],
)
def test_integer_noise_is_enumerated(event, epsilon):
    holds(Repeated(event, count=2), epsilon, exact_two_draws(event, epsilon))


def test_skellam_noise_is_enumerated():
    z = np.arange(-300, 301)
    p, q = (stats.skellam.pmf(z, 20.0, 20.0, loc=centre) for centre in (3, 0))
    exact = float(np.maximum(np.outer(p, p) - math.e * np.outer(q, q), 0.0).sum())
    holds(Repeated(SkellamEvent(variance=40.0, sensitivity=3, adjacency=A), count=2), 1.0, exact, 2e-4)


def test_parallel_groups_are_known_mixtures():
    """With probability .5 nobody's group: losses 0.4, 0, -0.4 of known masses, 12 times."""
    response = PureEvent(epsilon=0.4, adjacency=A)
    event = Parallel((response, response), probabilities=(0.3, 0.2))
    heavy = 1 / (1 + math.exp(-0.4))
    distribution = np.array([1.0])
    for _ in range(12):
        distribution = np.convolve(distribution, [0.5 * (1 - heavy), 0.5, 0.5 * heavy])
    exact = float(distribution @ np.maximum(-np.expm1(1.0 - 0.4 * np.arange(-12, 13)), 0.0))
    holds(Repeated(event, count=12), 1.0, exact, 1e-6)
    worst = Parallel.worst((response, PureEvent(epsilon=0.3, adjacency=A)))
    assert bounds(Repeated(worst, count=12), 1e-3) == pytest.approx(
        bounds(Repeated(response, count=12), 1e-3), rel=1e-9
    )


def test_rates_of_nested_samples_multiply():
    plain = bounds(Repeated(sampled(laplace(2.0), 0.3), count=50), 1e-3)
    nested = sampled(sampled(laplace(2.0), 0.6), 0.5)
    assert bounds(Repeated(nested, count=50), 1e-3) == pytest.approx(plain, rel=1e-9)


@pytest.mark.slow  # the verifier composes the losses of many plans from both sides
def test_a_sample_of_a_composition_is_one_draw():
    """Two Gaussian draws on one sample are one Gaussian draw of their joint mu."""
    one = sampled(gaussian(3.0 / math.sqrt(2.0)), 0.05)
    both = sampled(Composed((gaussian(3.0), PureEvent(epsilon=1e-9, adjacency=A), gaussian(3.0))), 0.05)
    truth = bounds(Repeated(one, count=200), 1e-6)
    low, high = bounds(Repeated(both, count=200), 1e-6)
    assert 0.999 * truth[0] <= low <= truth[1]
    assert truth[0] <= high <= 1.001 * truth[1]


@pytest.mark.slow_after(2)  # the verifier composes the losses of many plans from both sides
@pytest.mark.parametrize("count", [2, 3, 100, 10_000])
def test_any_number_of_draws_within_a_sample_counts(count):
    """Laplace draws of scale s sqrt(count) tend to a Gaussian: both bounds of a sample of them stay together."""
    low, high = bounds(sampled(Repeated(laplace(3.0 * math.sqrt(count)), count=count), 0.1), 1e-5)
    limit = bounds(sampled(gaussian(3.0), 0.1), 1e-5)
    assert high <= 1.01 * low
    if count == 10_000:
        assert low == pytest.approx(limit[0], rel=0.02)


def test_a_sample_without_replacement_is_its_profile():
    """Balle, Barthe and Gaboardi 2018: q H(log(1 + (e^eps - 1) / q)); two randomised responses, term by term."""
    q, epsilon = 0.25, 1.2
    inner = PureEvent(epsilon=epsilon, adjacency=Adjacency.REPLACE_ONE)
    event = FixedSizeSampled(Composed((inner, inner)), sample_size=1, population=4)
    heavy = 1 / (1 + math.exp(-epsilon))
    masses, losses = (
        np.array([(1 - heavy) ** 2, 2 * heavy * (1 - heavy), heavy**2]),
        epsilon * np.array([-2.0, 0.0, 2.0]),
    )
    for at in (0.2, 0.9):
        t = math.log1p(math.expm1(at) / q)
        exact = q * float(masses @ np.maximum(-np.expm1(t - losses), 0.0))
        holds(event, at, exact, 1e-6)


def test_a_profile_of_points_stands_for_its_own_pair():
    """The two points of a randomised response's profile are the randomised response."""
    points = ProfileEvent(epsilons=(0.0, 0.4), deltas=(math.tanh(0.2), 0.0), adjacency=A)
    response = PureEvent(epsilon=0.4, adjacency=A)
    wanted = bounds(Repeated(response, count=30), 1e-3)
    assert bounds(Repeated(points, count=30), 1e-3) == pytest.approx(wanted, rel=1e-6)


def test_what_has_no_losses_has_no_upper_bound_by_them():
    low, high = bounds(Composed((ZeroConcentratedEvent(rho=0.1, adjacency=A), laplace(1.0))), 1e-5)
    assert low > bounds(gaussian(1 / math.sqrt(0.2)), 1e-5)[0] * 0.999  # a Gaussian keeps the statement
    assert high == math.inf


@pytest.mark.slow  # the verifier composes the losses of many plans from both sides
@pytest.mark.parametrize(
    "event",
    [
        Repeated(sampled(gaussian(1e-9), 0.01), count=10**12),
        Repeated(sampled(laplace(1e-9), 0.01), count=10**12),
        Repeated(sampled(PureEvent(epsilon=1e9, adjacency=A), 1e-9), count=10**12),
        Composed((laplace(1e-90), gaussian(1e90), laplace(1.0))),
        Repeated(BoundedRangeEvent(epsilon=1e3, adjacency=A), count=10**9),
        Repeated(sampled(gaussian(1.0), 1e-12), count=2**53),
    ],
)
def test_extremes_end_with_bounds(event):
    low, high = bounds(event, 1e-6)
    assert 0.0 <= low <= high


def test_a_bounded_range_is_all_of_its_pairs_from_above():
    """A forger could once claim less than it costs alone."""
    event = Composed((BoundedRangeEvent(epsilon=1.25, adjacency=A), laplace(18.0)))
    t = np.linspace(1.0, 1.25, 4001)[:-1]  # the pairs of two outputs, by the larger log ratio
    alone = (np.expm1(1.25 - t) / np.expm1(1.25) * np.exp(t) - np.expm1(1.25 - t) / np.expm1(1.25) * math.e).max()
    assert bounds(event, float(alone))[1] >= 1.0


def test_an_allocation_of_several_steps_is_not_refuted_below_its_blocks():
    """The exact epsilon of 2 of 3 Gaussian steps with multiplier 2 at delta 1e-3 is 1.6322; the blocks cost 1.753."""
    low, high = bounds(RandomAllocation(gaussian(2.0), selected=2, steps=3), 1e-3)
    assert 1.0 <= low <= 1.6322 <= high
