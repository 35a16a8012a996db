"""Vectors of discrete Gaussians against exact sums over the integers."""

import math

import mpmath
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting import discrete_gaussian_vector
from ledgerwood.errors import InvalidParameter

A = lw.Adjacency.ADD_REMOVE


def masses(scale):
    """A discrete Gaussian's probabilities, and its integers."""
    z = np.arange(-math.ceil(14 * scale), math.ceil(14 * scale) + 1.0)
    weight = np.exp(-0.5 * (z / scale) ** 2)
    return z, weight / weight.sum()


def exact_delta(scale, shift, epsilon):
    """sup_S P(S) - e^epsilon Q(S) of two coordinates that move by `shift`; the noise is symmetric."""
    z, p = masses(scale)
    losses = [(v * z + 0.5 * v * v) / scale**2 for v in shift]  # of z + v against z
    loss = losses[0][:, None] + losses[1][None, :]
    return float((np.outer(p, p) * np.maximum(-np.expm1(epsilon - loss), 0.0)).sum())


@pytest.mark.parametrize(
    ("scale", "shift"), [(4.0, (3, 4)), (10.0, (1, 1)), (7.5, (10, 0)), (3.0, (1, 2)), (6.0, (5, 5))]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_no_shift_of_this_norm_costs_more_and_the_bound_is_near(scale, shift, epsilon):
    norm = math.hypot(*shift)
    event = discrete_gaussian_vector(scale=scale, l2_sensitivity=norm, coordinates=2, adjacency=A, slack=1e-12)
    truth, bound = exact_delta(scale, shift, epsilon), lw.price(event).delta(epsilon)
    assert truth <= bound
    smooth = math.sqrt(scale**2 - math.log(4.1 * 2 / 1e-12) / (2 * math.pi**2))  # of the Gaussian that is rounded
    least = lw.price(lw.GaussianEvent(noise_multiplier=smooth / norm, adjacency=A)).delta(epsilon)
    assert bound == pytest.approx(least + 1e-12, rel=1e-3)


def test_at_a_given_delta_it_costs_less_than_its_concentration():
    event = discrete_gaussian_vector(scale=50.0, l2_sensitivity=10.0, coordinates=1000, adjacency=A)
    stated = lw.ZeroConcentratedEvent(rho=10.0**2 / (2 * 50.0**2), adjacency=A)
    plain = lw.price(lw.Repeated(lw.GaussianEvent(noise_multiplier=5.0, adjacency=A), count=100)).epsilon(1e-6)
    found = lw.price(lw.Repeated(event, count=100)).epsilon(1e-6)
    assert plain < found < 1.002 * plain
    assert found < 0.95 * lw.price(lw.Repeated(stated, count=100)).epsilon(1e-6)


@pytest.mark.parametrize(("coordinates", "slack"), [(1, 1e-3), (10, 1e-12), (10**6, 1e-30), (10**12, 1e-200)])
def test_what_the_rounding_misses_is_within_the_slack(coordinates, slack):
    event = discrete_gaussian_vector(
        scale=1000.0, l2_sensitivity=1.0, coordinates=coordinates, adjacency=A, slack=slack
    )
    with mpmath.workdps(250):
        square = mpmath.mpf(1000) ** 2 - mpmath.mpf(event.events[0].noise_multiplier) ** 2
        # the sum of the weights around x, at its largest and its smallest
        height = [mpmath.nsum(lambda y, x=x: mpmath.exp(-((y - x) ** 2) / (2 * square)), [-400, 400]) for x in (0, 0.5)]
        around = mpmath.sqrt(2 * mpmath.pi * square)
        theta = max(abs(each / around - 1) for each in height)
        assert 2 * coordinates * theta <= slack
        assert event.events[1].delta == slack


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scale": 1.0}, "scale=1.0 must be above"),
        ({"scale": 0.0}, "scale"),
        ({"l2_sensitivity": -1.0}, "l2_sensitivity"),
        ({"coordinates": 0}, "coordinates"),
        ({"slack": 0.5}, "slack"),
    ],
)
def test_a_bad_value_is_named(change, named):
    values = {"scale": 10.0, "l2_sensitivity": 1.0, "coordinates": 3, "adjacency": A} | change
    with pytest.raises(InvalidParameter, match=named):
        discrete_gaussian_vector(**values)
