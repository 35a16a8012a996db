"""Mixtures of Gaussians: the profile against mpmath, vectors against one coordinate, moments against quadrature."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

import ledgerwood as lw
from ledgerwood.accounting import user_sampled
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import joint
from ledgerwood.accounting.events import to_json
from ledgerwood.errors import InvalidParameter, UnsupportedEvent
from ledgerwood.verification.ledgers.bounds import events as bounds
from ledgerwood.verification.ledgers.bounds.pair import heights
from ledgerwood.verification.ledgers.pairs import parse

A, Z = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT
GAUSS = lw.GaussianEvent(noise_multiplier=2.0, adjacency=Z)


def mixture(shifts, weights, noise=1.0):
    return lw.GaussianMixtureEvent(shifts=shifts, probabilities=weights, noise_multiplier=noise, adjacency=A)


CASES = [
    mixture((1.0, 2.0, 3.0), (0.2, 0.05, 0.001)),
    user_sampled(GAUSS, sampling_rate=0.01, rows_at_most=10),
    user_sampled(lw.GaussianEvent(noise_multiplier=0.5, adjacency=Z), sampling_rate=0.9, rows_at_most=3),
    mixture((1.0,), (1.0,), 3.0),
    mixture((0.01, 1.0), (0.5, 0.5), 0.05),
    mixture((1.0,), (1e-60,), 2.0),
]


def exact(event, epsilon, direction):
    """The profile, by the output at which the ratio passes e^epsilon, in mpmath."""
    noise = mpmath.mpf(event.noise_multiplier)
    pairs = [(mpmath.mpf(s) / noise, mpmath.mpf(p)) for s, p in zip(event.shifts, event.probabilities, strict=True)]
    rest = 1 - sum(p for _, p in pairs)
    bound = mpmath.exp(epsilon if direction is Direction.REMOVE else -epsilon)

    def ratio(z):
        return rest + sum(p * mpmath.exp(mu * z - mu * mu / 2) for mu, p in pairs)

    if rest >= bound:
        return mpmath.mpf(0)
    low, high = mpmath.mpf(-60), mpmath.mpf(3000)
    for _ in range(260):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) < bound else (low, middle)
    if direction is Direction.REMOVE:
        return sum(p * (mpmath.ncdf(mu - low) - mpmath.ncdf(-low)) for mu, p in pairs) - mpmath.expm1(
            epsilon
        ) * mpmath.ncdf(-low)
    with_unit = rest * mpmath.ncdf(low) + sum(p * mpmath.ncdf(low - mu) for mu, p in pairs)
    return mpmath.ncdf(low) - mpmath.exp(epsilon) * with_unit


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    "event", [mixture((1.194, 29.0), (2.13e-16, 1.34e-14)), mixture((1.0, 25.0), (1e-15, 1e-12))], ids=range(2)
)
def test_ratios_near_one_are_told_apart_where_another_shift_is_far_away(event, direction):
    epsilons = np.array([0.0, 1e-17, 1e-15, 3e-15])
    above = event.log_profile(epsilons, direction=direction)
    below = joint.log_profile(event, epsilons, direction)
    with mpmath.workdps(120):
        for epsilon, high, low in zip(epsilons.tolist(), above, below, strict=True):
            assert low <= mpmath.log(exact(event, mpmath.mpf(epsilon), direction)) <= high


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("event", CASES, ids=range(len(CASES)))
def test_the_profile_from_both_sides(event, direction):
    epsilons = np.array([0.0, 0.02, 0.5, 2.0, 10.0])
    above = event.log_profile(epsilons, direction=direction)
    below = joint.log_profile(event, epsilons, direction)
    with mpmath.workdps(120):
        for epsilon, high, low in zip(epsilons.tolist(), above, below, strict=True):
            true = exact(event, mpmath.mpf(epsilon), direction)
            if true < mpmath.mpf(10) ** -300:
                assert high < -600.0
                continue
            log = mpmath.log(true)
            assert low <= log <= high
            assert high - log < 1e-6
            if log > -60.0 and event.probabilities != (1e-60,):
                assert log - low < 1e-6


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("event", CASES[:4], ids=range(4))
def test_divergences_against_a_fine_sum(event, direction, order):
    z = np.linspace(-40.0, 60.0, 200_001)
    mu = event.mus()
    ratio = event.rest() + np.exp(mu * (z[:, None] - 0.5 * mu)) @ np.array(event.probabilities)
    power = order if direction is Direction.REMOVE else 1.0 - order
    density = np.exp(-0.5 * z * z)
    excess = np.exp(power * np.log(ratio) - 0.5 * z * z) - density - power * (ratio - 1.0) * density
    true = np.log1p(excess.sum() * 5e-4 / math.sqrt(2.0 * math.pi)) / (order - 1.0)
    found = event.renyi(np.array([order]), direction=direction)[0]
    assert true * (1.0 - 1e-7) <= found <= true * (1.0 + 2e-4)


def test_one_certain_shift_is_the_gaussian_and_one_shift_its_sample():
    epsilons = np.array([0.0, 0.3, 1.0, 4.0])
    noise = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
    for weight, other in ((1.0, noise), (0.1, lw.PoissonSampled(noise, sampling_rate=0.1))):
        event = mixture((0.5,), (weight,))
        for direction in Direction:
            one, two = (e.log_profile(epsilons, direction=direction) for e in (event, other))
            assert np.allclose(one[one > -600.0], two[one > -600.0], rtol=1e-9)
    assert mixture((0.5,), (1.0,)).mu() == pytest.approx(0.5)


def test_vectors_cost_at_most_what_one_coordinate_does():
    """Two rows that move the sum in different directions, by a sum over a plane."""
    event = mixture((1.0, 2.0), (2 * 0.3 * 0.7, 0.09), 0.8)
    x = np.linspace(-9.0, 11.0, 401)
    plane = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)

    def density(shift):
        return np.exp(-((plane - np.array(shift) / 0.8) ** 2).sum(axis=-1) / 2.0) / (2.0 * math.pi) * 0.05**2

    for angle in (0.0, 1.0, 2.0, math.pi):
        one, other = (1.0, 0.0), (math.cos(angle), math.sin(angle))
        both = (one[0] + other[0], one[1] + other[1])
        without = density((0.0, 0.0))
        moved = 0.49 * without + 0.21 * density(one) + 0.21 * density(other) + 0.09 * density(both)
        for epsilon in (0.1, 0.7, 2.0):
            for direction, p, q in ((Direction.REMOVE, moved, without), (Direction.ADD, without, moved)):
                value = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
                bound = math.exp(event.log_profile(np.array([epsilon]), direction=direction)[0])
                assert value <= bound * (1.0 + 1e-3) + 1e-9
                if angle == 0.0 and bound > 1e-6:
                    assert value == pytest.approx(bound, rel=2e-2)


@pytest.mark.parametrize(("rows", "rate"), [(1, 0.3), (7, 0.01), (40, 0.999), (256, 0.5), (3, 1.0)])
def test_binomial_weights_are_never_too_small(rows, rate):
    noise = lw.GaussianEvent(noise_multiplier=50.0, adjacency=A)
    event = user_sampled(noise, sampling_rate=rate, rows_at_most=rows)
    weights = dict(zip(event.shifts, event.probabilities, strict=True))
    for j in range(1, rows + 1):
        tail = math.fsum(w for shift, w in weights.items() if shift >= j)
        true = binom.sf(j - 1, rows, rate)
        assert true * (1.0 - 1e-12) <= tail <= true * (1.0 + 1e-9) + 1e-97


@pytest.mark.parametrize(
    "event",
    [mixture((1.0,), (1e-100,)), mixture((30.0,), (1.0,)), mixture((1.0, 30.0), (0.5, 0.5)), mixture((1e-6,), (1e-3,))],
    ids=range(4),
)
def test_divergences_at_the_ends_of_the_range_are_numbers(event):
    largest = lw.GaussianEvent(noise_multiplier=1.0 / event.shifts[-1], adjacency=A)
    orders = np.array([1.0001, 2.0, 64.0])
    for direction in Direction:
        found = event.renyi(orders, direction=direction)
        assert (found > 0.0).all()
        assert (found <= largest.renyi(orders) * (1.0 + 1e-9)).all()


def test_a_unit_of_several_rows_costs_less_than_its_group():
    whole = lw.Repeated(user_sampled(GAUSS, sampling_rate=0.01, rows_at_most=2), count=100)
    one = lw.Repeated(lw.PoissonSampled(GAUSS, sampling_rate=0.01), count=100)
    together = lw.PoissonSampled(lw.grouped(GAUSS, size=2), sampling_rate=1.0 - 0.99**2)
    priced = lw.price(whole)
    low, high = priced.epsilon_interval(1e-6)
    assert lw.price(one).epsilon(1e-6) < low <= high < 0.7 * lw.price(lw.Repeated(together, count=100)).epsilon(1e-6)
    assert high - low < 1e-3 * high
    assert user_sampled(GAUSS, sampling_rate=0.01, rows_at_most=1).shifts == (1.0,)


def test_the_verifier_holds_its_losses_from_both_sides():
    node = parse(to_json(CASES[0]))
    pairs = [bounds.pair_of(node, -300.0, side, bounds.Work()) for side in ("lower", "upper")]
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        for direction in Direction:
            low, high = (
                float(heights(p if direction is Direction.REMOVE else p.mirrored(), np.array([epsilon]))[0])
                for p in pairs
            )
            true = math.exp(CASES[0].log_profile(np.array([epsilon]), direction=direction)[0])
            assert low * (1.0 - 1e-9) <= true <= high * (1.0 + 1e-9) + 1e-100
            assert high - low <= 1e-3 * high + 1e-90
            factor = -math.exp(epsilon)
            stick = node.positive_part(*((1, factor) if direction is Direction.REMOVE else (factor, 1)))
            assert float(stick) == pytest.approx(true, rel=1e-9, abs=1e-100)


@pytest.mark.parametrize(
    ("shifts", "weights"),
    [((), ()), ((1.0,), (0.5, 0.1)), ((2.0, 1.0), (0.1, 0.1)), ((0.0,), (0.1,)), ((1.0,), (0.0,)), ((1.0,), (1.1,)),
     ((1.0, 2.0), (0.9, 0.2)), ((31.0,), (0.1,)), ((1e-7,), (0.1,)), (tuple(range(1, 258)), (1e-3,) * 257)],
)  # fmt: skip
def test_refusals(shifts, weights):
    with pytest.raises(InvalidParameter):
        mixture(shifts, weights, 1.0 if len(shifts) < 257 else 20.0)


def test_replace_one_and_other_noise_are_refused():
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        lw.GaussianMixtureEvent(shifts=(1.0,), probabilities=(0.5,), noise_multiplier=1.0,
                                adjacency=lw.Adjacency.REPLACE_ONE)  # fmt: skip
    with pytest.raises(UnsupportedEvent, match="GaussianEvent"):
        user_sampled(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.1, rows_at_most=2)
