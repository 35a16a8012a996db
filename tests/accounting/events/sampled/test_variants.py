"""Truncated and cyclic Poisson samples, against enumeration and closed forms of small runs."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import ledgerwood as lw
from ledgerwood.accounting import cyclic_poisson, truncated_poisson
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.events.sampled.variants import overflow_probability
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = lw.Adjacency.ADD_REMOVE
PLACES = np.linspace(-12.0, 12.0, 24_001)


def density(rows, rate, batch, sigma):
    """The density of a truncated step's sum at PLACES, by all coins; the first rows by index are the batch."""
    total = np.zeros_like(PLACES)
    for coins in itertools.product((0, 1), repeat=len(rows)):
        weight = math.prod(rate if coin else 1.0 - rate for coin in coins)
        taken = [value for value, coin in zip(rows, coins, strict=True) if coin][:batch]
        total += weight * norm.pdf(PLACES, loc=sum(taken), scale=sigma)
    return total


def divergence(one, other, epsilon):
    return np.trapezoid(np.maximum(one - math.exp(epsilon) * other, 0.0), PLACES)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_truncation_against_all_coins(batch, place):
    """Rows of opposite sign, where a row that takes another's place moves the sum by 2."""
    rate, sigma = 0.3, 0.8
    event = truncated_poisson(
        lw.GaussianEvent(noise_multiplier=sigma, adjacency=A), sampling_rate=rate, rows_at_most=4, batch_at_most=batch
    )
    others = [-1.0, -1.0, -1.0]
    with_row, without = (
        density([*others[:place], 1.0, *others[place:]], rate, batch, sigma),
        density(others, rate, batch, sigma),
    )
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        for direction, pair in ((Direction.REMOVE, (with_row, without)), (Direction.ADD, (without, with_row))):
            bound = math.exp(float(event.log_profile(np.array([epsilon]), direction=direction)[0]))
            assert divergence(*pair, epsilon) <= bound + 1e-9


def test_the_first_row_that_cuts_off_another_costs_more_than_a_poisson_sample():
    """So the overflow has to be charged."""
    noise = lw.GaussianEvent(noise_multiplier=0.8, adjacency=A)
    true = divergence(density([1.0, -1.0, -1.0, -1.0], 0.3, 1, 0.8), density([-1.0] * 3, 0.3, 1, 0.8), 1.0)
    poisson = lw.price(lw.PoissonSampled(noise, sampling_rate=0.3)).delta(1.0)
    assert true > 1.05 * poisson


def test_truncation_is_never_above_the_usual_charge():
    noise = lw.GaussianEvent(noise_multiplier=1.0, adjacency=A)
    for batch in (20, 30, 40, 60):
        event = truncated_poisson(noise, sampling_rate=0.01, rows_at_most=1500, batch_at_most=batch)
        chance = overflow_probability(1500, 0.01, batch + 1)
        for epsilon in (0.5, 1.0, 3.0):
            usual = lw.price(lw.PoissonSampled(noise, sampling_rate=0.01)).delta(epsilon)
            assert lw.price(event).delta(epsilon) <= usual + (1.0 + math.exp(epsilon)) * chance + 1e-12 * usual


def test_composed_truncated_steps_have_a_price():
    step = truncated_poisson(
        lw.GaussianEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.01, rows_at_most=10_000, batch_at_most=150
    )
    poisson = lw.Repeated(step.events[0], count=100)
    priced = lw.price(lw.Repeated(step, count=100))
    assert lw.price(poisson).epsilon(1e-5) < priced.epsilon(1e-5) < lw.price(poisson).epsilon(1e-5) * 1.01
    with pytest.raises(UnsupportedEvent):
        truncated_poisson(lw.GaussianEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.REPLACE_ONE),
                          sampling_rate=0.1, rows_at_most=10, batch_at_most=5)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "rate", "batch"), [(10, 0.3, 5), (1500, 0.01, 40), (100_000, 1e-3, 200), (10**7, 1e-5, 101), (3, 0.5, 3)]
)
def test_overflow_against_mpmath(rows, rate, batch):
    with mpmath.workdps(40):
        q = mpmath.mpf(rate)
        true = mpmath.betainc(batch, rows - batch + 1, 0, q, regularized=True)
        found = overflow_probability(rows, rate, batch)
        assert true <= found <= true * (1 + mpmath.mpf(10) ** -5)  # the rounding that is charged grows with the rows


def test_overflow_at_its_ends():
    assert overflow_probability(10, 0.5, 11) == 0.0
    assert overflow_probability(10, 0.5, 5) == 1.0
    assert overflow_probability(10, 1.0, 10) == 1.0
    assert 0.0 < overflow_probability(10**6, 1e-3, 10**6) <= 1e-300


def test_cyclic_samples_by_their_second_moment():
    """E_Q r^2 of the run: a product of 1 + q^2 (e^{|c|^2 / s^2} - 1) over the row's own columns."""
    matrix = np.array([[2.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.5, 3.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    event = cyclic_poisson(matrix, noise_multiplier=4.0, sampling_rate=0.2, groups=2, adjacency=A)
    norms = np.sum(matrix**2, axis=0) / 16.0
    moments = [np.log1p(0.04 * np.expm1(norms[first::2])).sum() for first in (0, 1)]
    assert event.renyi(np.array([2.0]))[0] == pytest.approx(max(moments), rel=1e-9)  # one group's columns are larger
    assert event.renyi(np.array([2.0]))[0] >= max(moments)


def test_cyclic_samples_of_independent_noise_are_poisson_samples():
    poisson = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.1)
    whole = cyclic_poisson(np.eye(6), noise_multiplier=2.0, sampling_rate=0.1, groups=1, adjacency=A)
    assert whole == lw.Repeated(poisson, count=6)
    thirds = cyclic_poisson(np.eye(7), noise_multiplier=2.0, sampling_rate=0.1, groups=3, adjacency=A)
    assert thirds == lw.Repeated(poisson, count=3)


@pytest.mark.parametrize(
    "wrong",
    [np.triu(np.ones((3, 3))), np.tril(np.ones((3, 3))), np.ones((2, 3)), np.zeros((2, 2))],
    ids=["upper", "three-bands", "not-square", "zeros"],
)
def test_strategies_that_the_reduction_does_not_cover(wrong):
    with pytest.raises(InvalidParameter):
        cyclic_poisson(wrong, noise_multiplier=1.0, sampling_rate=0.1, groups=2, adjacency=A)
