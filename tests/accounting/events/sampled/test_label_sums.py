"""Allocations of several steps from below: the sum of labels has the distributions that enumeration finds."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import ledgerwood as lw
from ledgerwood.accounting import Direction
from ledgerwood.accounting.costs.losses import labels
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation

A = lw.Adjacency.ADD_REMOVE
EPSILONS = np.array([0.0, 0.2, 0.6, 1.0, 2.0, 4.0])


def gaussian(noise: float) -> Event:
    return lw.GaussianEvent(noise_multiplier=noise, adjacency=A)


@pytest.mark.parametrize(("selected", "steps"), [(1, 3), (2, 3), (2, 4), (3, 3)])
def test_the_sum_has_the_masses_of_an_enumeration_over_all_choices(selected, steps, monkeypatch):
    monkeypatch.setattr(labels, "_edges", lambda mu, rate, steps: np.array([-0.7, 0.1, 0.9, 2.0]))
    event = RandomAllocation(gaussian(0.9), selected=selected, steps=steps)
    found = labels._sums.__wrapped__(labels.SummedLabels(event, 1 / 0.9))
    cuts = np.array([-np.inf, -0.7, 0.1, 0.9, 2.0, np.inf])
    q, p = (np.diff(special.ndtr(cuts - mu)) for mu in (0.0, 1 / 0.9))
    expected = np.zeros((2, 4 * steps + 1))
    choices = list(itertools.combinations(range(steps), selected))
    for outcome in itertools.product(range(5), repeat=steps):
        expected[1, sum(outcome)] += math.prod(q[label] for label in outcome)
        for chosen in choices:
            held = (p[label] if step in chosen else q[label] for step, label in enumerate(outcome))
            expected[0, sum(outcome)] += math.prod(held) / len(choices)
    np.testing.assert_allclose([found.inside, found.outside], expected, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 40), (0.6, 7)])
def test_of_one_step_the_bound_is_below_the_certified_profile(noise, steps):
    event = RandomAllocation(gaussian(noise), steps=steps)
    pair = labels.SummedLabels(event, 1 / noise)
    for direction in Direction:
        below = pair.log_profile_below(EPSILONS, direction)
        assert (below <= event.log_profile(EPSILONS, direction=direction)).all()
        assert (below <= pair.log_profile(EPSILONS, direction=direction)).all()
        assert np.exp(below[1]) > 0.8 * np.exp(event.log_profile(EPSILONS, direction=direction)[1])


@pytest.mark.parametrize("steps", [1, 5])
def test_of_all_steps_the_bound_is_below_the_gaussian_profile_and_near_it(steps):
    """The unit is in every step: the pair is one Gaussian with mu sqrt(t)."""
    mu = 0.8 * math.sqrt(steps)
    pair = labels.SummedLabels(RandomAllocation(gaussian(1 / 0.8), selected=steps, steps=steps), 0.8)
    exact = stats.norm.cdf(mu / 2 - EPSILONS / mu) - np.exp(EPSILONS) * stats.norm.cdf(-mu / 2 - EPSILONS / mu)
    for direction in Direction:
        found = np.exp(pair.log_profile_below(EPSILONS, direction))
        assert (found <= exact * (1.0 + 1e-9)).all()
        assert (found[:4] >= 0.95 * exact[:4]).all()  # beyond, few labels are left


@pytest.mark.parametrize(
    ("noise", "selected", "steps", "widest"), [(1.0, 2, 100, 0.03), (2.0, 15, 150, 0.015), (1.0, 2, 4, 0.1)]
)
def test_both_ends_of_an_interval_are_near_each_other(noise, selected, steps, widest):
    """The gap is that of the blocks; the plain sum of the outputs left one of 70 % for 2 of 100 steps."""
    low, high = lw.price(lw.RandomAllocation(gaussian(noise), selected=selected, steps=steps)).epsilon_interval(1e-5)
    assert 0.0 < high / low - 1.0 < widest


def test_of_little_use_a_part_is_the_plain_sum_or_the_first_step():
    rare = labels.part_of(RandomAllocation(gaussian(1.0), selected=3, steps=1_000_000))
    assert isinstance(rare, lw.GaussianEvent)
    assert rare.noise_multiplier == pytest.approx(1000.0 / 3.0, rel=1e-12)
    assert rare.noise_multiplier > 1000.0 / 3.0
    laplace = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A)
    first = labels.part_of(RandomAllocation(laplace, selected=2, steps=10))
    assert first == lw.PoissonSampled(laplace, sampling_rate=first.sampling_rate)
    assert 0.2 * (1 - 1e-15) <= first.sampling_rate <= 0.2
