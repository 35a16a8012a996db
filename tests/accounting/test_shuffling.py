"""Shuffled batches: both bounds against exact divergences of small passes, and against other statistics."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import ledgerwood as lw
from ledgerwood.accounting import ShuffledBatches, explaining
from ledgerwood.accounting.costs.losses import maxima
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A, Z, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE


def batches(sigma, adjacency, steps, epochs=1):
    noise = lw.GaussianEvent(noise_multiplier=sigma, adjacency=adjacency)
    return ShuffledBatches(noise, steps=steps, epochs=epochs)


def density(rows, size, sigma, places):
    """The joint density of two batches' sums, by all orders of the rows; the last batch may be short."""
    orders = list(itertools.permutations(rows))
    total = np.zeros((len(places), len(places)))
    for order in orders:
        sums = sum(order[:size]), sum(order[size:])
        first, second = (norm.pdf(places, loc=s, scale=sigma) for s in sums)
        total += first[:, None] * second[None, :] / len(orders)
    return total


@pytest.mark.parametrize(
    ("adjacency", "with_row", "without"),
    [
        (Z, (1.0, -1.0, -1.0, -1.0), (0.0, -1.0, -1.0, -1.0)),
        (A, (1.0, -1.0, -1.0, -1.0), (-1.0, -1.0, -1.0)),
        (R, (0.5, -0.5, -0.5, -0.5), (-0.5, -0.5, -0.5, -0.5)),
    ],
    ids=lambda value: value.value if isinstance(value, lw.Adjacency) else "",
)
@pytest.mark.parametrize("sigma", [0.6, 1.5])
def test_both_bounds_around_the_exact_divergence_of_two_batches(adjacency, with_row, without, sigma):
    """All orders of four rows: the exact divergence lies between both ends."""
    places = np.linspace(-2.0 - 9.0 * sigma, 1.0 + 9.0 * sigma, 601)
    one, other = (density(rows, 2, sigma, places) for rows in (with_row, without))
    area = (places[1] - places[0]) ** 2
    run = batches(sigma, adjacency, 2)
    for epsilon in (0.0, 1.0, 2.5):
        exact = max(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * area for p, q in ((one, other), (other, one)))
        lower, upper = run.delta_interval(epsilon)
        assert lower <= exact * (1.0 + 1e-3) + 1e-12
        assert exact <= upper * (1.0 + 1e-3)
        assert lower >= 0.3 * exact  # and is not far below


@pytest.mark.parametrize(("sigma", "steps", "delta"), [(0.5, 100, 1e-5), (1.0, 1000, 1e-5), (2.0, 100, 1e-10)])
def test_the_lower_end_is_near_the_best_threshold(sigma, steps, delta):
    """Chua et al. 2024: sets {largest output > c}; the cells see all of them, but for what they move down."""
    places, shift = np.linspace(-5.0, 60.0, 100_001), 1.0 / sigma
    rest = (steps - 1) * norm.logcdf(places)
    p, q = (-np.expm1(rest + norm.logcdf(places - k * shift)) for k in (2, 1))
    lower, _ = batches(sigma, Z, steps).epsilon_interval(delta)
    best = max(epsilon for epsilon in np.linspace(0.0, 20.0, 2001) if (p - math.exp(epsilon) * q).max() > delta)
    assert best - 0.02 <= lower


def test_the_tails_against_mpmath():
    with_row, without = maxima._tails(Z, 0.7, 1000)
    for place in (-1.0, 2.0, 5.0, 12.0, 25.0):
        with mpmath.workdps(200):
            for tail, moved in ((with_row, 1.4), (without, 0.7)):
                true = 1 - mpmath.ncdf(place) ** 999 * mpmath.ncdf(mpmath.mpf(place) - mpmath.mpf(moved))
                assert abs(tail(np.array([place]))[0] / true - 1) < 1e-12


def test_passes_of_fixed_rows_compose(monkeypatch):
    """Three passes by all triples of cells of one pass."""
    monkeypatch.setattr(maxima, "_CELLS", 80)
    single = maxima._single(*maxima._tails(Z, 1.0, 10), 10, 2.0)
    loss = single.step * (single.first + np.arange(len(single.mass)))
    whole = loss[:, None, None] + loss[None, :, None] + loss[None, None, :]
    mass = single.mass[:, None, None] * single.mass[None, :, None] * single.mass[None, None, :]
    for epsilon in (1.0, 4.0, 8.0):
        exact = float((mass * np.maximum(-np.expm1(epsilon - whole), 0.0)).sum())
        assert maxima._power(single, 3).delta(epsilon) == pytest.approx(exact, rel=1e-9)


def test_poisson_prices_are_far_below_and_every_end_is_ordered():
    for sigma, steps, epochs in ((1.0, 1000, 1), (0.5, 100, 10), (0.8, 10_000, 1)):
        noise = lw.GaussianEvent(noise_multiplier=sigma, adjacency=A)
        sampled = lw.Repeated(lw.PoissonSampled(noise, sampling_rate=1.0 / steps), count=steps * epochs)
        poisson = lw.price(sampled).epsilon(1e-5)
        zero = batches(sigma, Z, steps, epochs).epsilon_interval(1e-5)
        add = batches(sigma, A, steps, epochs).epsilon_interval(1e-5)
        assert 2.0 * poisson < zero[0] <= zero[1]
        assert zero[0] < add[0] <= add[1]
    run = batches(0.5, A, 100)
    assert run.epsilon_interval(1e-5)[0] > lw.price(run.event).epsilon(1e-5)  # one sensitivity a pass is no bound


def test_large_noise_is_bounded_by_the_sum():
    lower, _ = batches(50.0, R, 100, 10).epsilon_interval(1e-5)
    exact = lw.GaussianEvent(noise_multiplier=50.0 * math.sqrt(10.0), adjacency=R)
    assert lower == pytest.approx(lw.price(exact).epsilon(1e-5), rel=1e-6)


@pytest.mark.parametrize("adjacency", [A, Z, R])
def test_one_batch_is_the_noise_itself(adjacency):
    noise = lw.GaussianEvent(noise_multiplier=1.0, adjacency=adjacency)
    lower, upper = ShuffledBatches(noise, steps=1, epochs=3).epsilon_interval(1e-6)
    assert ShuffledBatches(noise, steps=1, epochs=3).above() == lw.Repeated(noise, count=3)
    assert lower == pytest.approx(upper, rel=1e-4)
    assert lower <= upper


def test_the_explanation_names_the_sampler_and_the_shuffled_cost():
    noise = lw.GaussianEvent(noise_multiplier=1.0, adjacency=Z)
    sampled = lw.Repeated(lw.PoissonSampled(noise, sampling_rate=0.001), count=1000)
    text = "\n".join(explaining._sampler(sampled, 1e-5))
    assert "sampler: Poisson samples" in text
    assert "1,000 batches a pass, passes: 1" in text
    assert "at least epsilon=2.88" in text
    assert "sampler: Poisson" in lw.price(lw.PoissonSampled(noise, sampling_rate=0.5)).explain(1e-5)
    assert "sampler: Poisson" in explaining._sampler(lw.Composed((sampled, noise)), 1e-5)[0]
    assert "a random allocation" in explaining._sampler(lw.RandomAllocation(noise, steps=10), None)[0]
    assert "sampler" not in lw.price(noise).explain(1e-5)


def test_refusals():
    with pytest.raises(UnsupportedEvent, match="GaussianEvent"):
        ShuffledBatches(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A), steps=3)
    with pytest.raises(InvalidParameter):
        batches(1.0, A, 0)
    for wrong in (0.0, -1.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter):
            batches(1.0, A, 3).epsilon_interval(wrong)
