"""The verifier's composed losses: never above the truth, and hardly below it."""

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
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    Repeated,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification import _losses, _pairs
from ledgerwood.verification._atoms import mp

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


def least(event, epsilon, delta):
    with mp.workdps(60):
        return float(_losses.least_delta(_pairs.parse(to_json(event)), epsilon, delta))


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


@pytest.mark.parametrize(("event", "delta", "reference"), PLANS)
def test_a_ten_thousandth_of_epsilon_is_missed(event, delta, reference):
    assert least(event, reference + 2e-6, delta) <= delta
    assert least(event, reference * (1 - 1e-4), delta) > delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "count", "at"), [(0.1, 1000, 19.0), (0.1, 1000, 30.0), (1.0, 7, 2.5), (0.7, 3, 0.3)]
)
def test_randomised_responses_are_binomial(epsilon, count, at):
    k = np.arange(count + 1)
    heavy = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = float(stats.binom.pmf(k, count, heavy) @ np.maximum(-np.expm1(at - (2 * k - count) * epsilon), 0.0))
    found = least(Repeated(PureEvent(epsilon=epsilon, adjacency=A), count=count), at, exact)
    assert exact * (1 - 1e-6) <= found <= exact


def test_two_sampled_laplace_draws_take_the_direction_of_an_addition():
    """The bracket by independent quadrature; a removal alone has .37518."""
    found = least(Repeated(sampled(laplace(1.0), 0.9), count=2), 0.1, 0.39)
    assert 0.39167 < found <= 0.3916842


def test_a_gaussian_and_a_laplace_draw_are_an_integral():
    mu, epsilon = 2.0, 4.0

    def gaussian_profile(e):
        return stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)

    inner = integrate.quad(lambda x: 0.5 * math.exp(x - 1) * gaussian_profile(epsilon - (2 * x - 1)), 0.0, 1.0)[0]
    exact = 0.5 * gaussian_profile(epsilon - 1) + 0.5 * math.exp(-1) * gaussian_profile(epsilon + 1) + inner
    found = least(Composed((gaussian(1 / mu), laplace(1.0))), epsilon, exact)
    assert exact * (1 - 2e-4) <= found <= exact * (1 + 1e-9)


def test_what_reveals_everything_does_so_once_a_draw():
    event = Repeated(ApproximateEvent(epsilon=0.1, delta=1e-7, adjacency=A), count=20)
    assert least(event, 100.0, 1e-6) == pytest.approx(-math.expm1(20 * math.log1p(-1e-7)), rel=1e-12)


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
    exact = exact_two_draws(event, epsilon)
    assert exact * (1 - 1e-4) <= least(Repeated(event, count=2), epsilon, exact) <= exact * (1 + 1e-9)


def test_parallel_groups_are_known_mixtures():
    """With probability .5 nobody's group: losses 0.4, 0, -0.4 of known masses, 12 times."""
    response = PureEvent(epsilon=0.4, adjacency=A)
    event = Parallel((response, response), probabilities=(0.3, 0.2))
    heavy = 1 / (1 + math.exp(-0.4))
    law = np.array([1.0])
    for _ in range(12):
        law = np.convolve(law, [0.5 * (1 - heavy), 0.5, 0.5 * heavy])
    exact = float(law @ np.maximum(-np.expm1(1.0 - 0.4 * np.arange(-12, 13)), 0.0))
    assert exact * (1 - 1e-6) <= least(Repeated(event, count=12), 1.0, exact) <= exact
    worst = Parallel.worst((response, PureEvent(epsilon=0.3, adjacency=A)))
    assert least(Repeated(worst, count=12), 1.0, 1e-3) == least(Repeated(response, count=12), 1.0, 1e-3)


def test_rates_of_nested_samples_multiply():
    plain = least(Repeated(sampled(laplace(2.0), 0.3), count=50), 2.0, 1e-3)
    nested = sampled(sampled(laplace(2.0), 0.6), 0.5)
    assert least(Repeated(nested, count=50), 2.0, 1e-3) == pytest.approx(plain, rel=1e-9)


def test_a_sample_of_a_composition_is_one_draw():
    """Two Gaussian draws on one sample are one Gaussian draw of their joint mu."""
    one = sampled(gaussian(3.0 / math.sqrt(2.0)), 0.05)
    both = sampled(Composed((gaussian(3.0), PureEvent(epsilon=1e-9, adjacency=A), gaussian(3.0))), 0.05)
    single = least(Repeated(one, count=200), 1.0, 1e-6)
    assert 0.97 * single <= least(Repeated(both, count=200), 1.0, 1e-6) <= single * (1 + 1e-6)


def test_a_profile_of_points_stands_for_its_own_pair():
    """The two points of a randomised response's profile are the randomised response."""
    points = ProfileEvent(epsilons=(0.0, 0.4), deltas=(math.tanh(0.2), 0.0), adjacency=A)
    response = PureEvent(epsilon=0.4, adjacency=A)
    wanted = least(Repeated(response, count=30), 3.0, 1e-3)
    assert least(Repeated(points, count=30), 3.0, 1e-3) == pytest.approx(wanted, rel=1e-3)


def test_an_unknown_node_is_read_from_its_profile():
    from ledgerwood.verification import _binned

    with mp.workdps(60):
        node = _pairs.parse(to_json(sampled(gaussian(1.0), 0.1)))
        rough, fine = _binned._from_profile(node, -40.0), _binned.binned(node, -40.0)
    for remove in (True, False):
        low, high = (_losses._one_direction([(pair, 100)], 2.5, -40.0, remove) for pair in (rough, fine))
        assert 0.8 * high <= low <= high


def test_what_has_no_losses_is_refused():
    with pytest.raises(ValueError, match="no losses"):
        least(Composed((ZeroConcentratedEvent(rho=0.1, adjacency=A), laplace(1.0))), 1.0, 1e-5)


@pytest.mark.parametrize(
    "event",
    [
        Repeated(sampled(gaussian(1e-9), 0.01), count=10**12),
        Repeated(sampled(laplace(1e-9), 0.01), count=10**12),
        Repeated(sampled(PureEvent(epsilon=1e9, adjacency=A), 1e-9), count=10**12),
        Composed((laplace(1e-90), gaussian(1e90), laplace(1.0))),
        Repeated(BoundedRangeEvent(epsilon=1e3, adjacency=A), count=10**9),
        Repeated(sampled(gaussian(1.0), 1e-12), count=2**53),
        Composed(tuple(sampled(laplace(1.0 + i / 400), 0.1) for i in range(300))),
    ],
)
def test_extremes_end_with_a_probability(event):
    assert 0.0 <= least(event, 1.0, 1e-6) <= 1.0
