"""Gaussian differential privacy against mpmath at 60 digits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting.costs import gdp
from ledgerwood.errors import InvalidParameter


def true_delta(mu: float, epsilon: float) -> mpf:
    """Balle and Wang 2018, Theorem 8, at enough digits for deltas down to 1e-300."""
    with mp.workdps(400):
        m, e = mpf(mu), mpf(epsilon)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.5, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("times", [0.0, 0.3, 1.0, 4.0, 20.0])
def test_delta_is_the_closed_form_and_never_below_it(mu, times):
    epsilon = times * (mu + mu * mu / 2)
    found, truth = gdp.delta(mu, epsilon), true_delta(mu, epsilon)
    assert found >= truth
    # a relative rounding of log delta by 5e-15 moves delta by that times the logarithm
    assert found <= max(truth * (1 + mpf("5e-15") * (4 + abs(mp.log(truth)))), mpf(2) ** -1074)


@pytest.mark.slow_after(11)  # prices many plans
@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5, 1e-12, 1e-100, 1e-300])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 100.0])
def test_mu_is_the_largest_that_fits_from_the_private_side(epsilon, delta):
    mu = gdp.mu(epsilon, delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu * (1 + 1e-13), epsilon) > delta


@pytest.mark.slow_after(7)  # prices many plans
@pytest.mark.parametrize("delta", [0.2, 1e-5, 1e-30, 1e-300])
@pytest.mark.parametrize("mu", [0.01, 1.0, 5.0])
def test_epsilon_is_the_least_that_fits_from_the_private_side(mu, delta):
    epsilon = gdp.epsilon(mu, delta)
    if epsilon == 0.0:
        assert true_delta(mu, 0.0) <= delta
        return
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu, epsilon * (1 - 1e-11)) > delta


def test_the_multiplier_of_epsilon_one_is_the_published_one():
    # the exact Gaussian calibration at (1, 1e-5) has multiplier 3.730631634...
    assert 1.0 / gdp.mu(1.0, 1e-5) == pytest.approx(3.73063163, abs=1e-8)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 50.0), st.floats(1e-12, 0.9))
def test_mu_and_epsilon_are_inverse(epsilon, delta):
    assert gdp.epsilon(gdp.mu(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-10, abs=1e-12)


def test_no_privacy_loss_at_mu_zero():
    assert gdp.delta(0.0, 0.0) == 0.0
    assert gdp.epsilon(0.0, 1e-5) == 0.0
    assert np.isneginf(gdp.log_delta(0.0, np.zeros(3))).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: gdp.mu(1.0, 0.0),
        lambda: gdp.mu(1.0, 1.0),
        lambda: gdp.mu(-1.0, 1e-5),
        lambda: gdp.mu(math.nan, 1e-5),
        lambda: gdp.epsilon(1.0, 0.0),
        lambda: gdp.epsilon(-1.0, 0.1),
        lambda: gdp.delta(1.0, math.inf),
    ],
)
def test_values_outside_their_bounds_are_refused(call):
    with pytest.raises(InvalidParameter):
        call()
