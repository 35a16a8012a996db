"""What the tables rest on: convexity, the tails' bound and the bounds in the complex plane, each by other means."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.individual_tables import GaussianPair, LaplacePair

PAIRS = {"gaussian": GaussianPair, "laplace": LaplacePair}
orders = st.floats(-2.0, 3.5).map(lambda x: 1.0 + 10.0**x)
rates = st.one_of(st.floats(-6.0, -0.01).map(lambda x: 10.0**x), st.floats(0.5, 0.999))


def k(pair, order, u):
    """log E s^a where the shift to the power `exponent` is u."""
    return float(np.logaddexp(0.0, pair.log_moments(np.array([order]), math.log2(u) / pair.exponent))[0])


@pytest.mark.slow  # the ground truth of each row, in mpmath
@settings(max_examples=200)
@given(
    kind=st.sampled_from(sorted(PAIRS)), rate=rates, order=orders, low=st.floats(-4.0, 1.0), width=st.floats(0.01, 1.0)
)
def test_log_moments_are_convex_in_the_square_of_mu_and_in_the_laplace_shift(kind, rate, order, low, width):
    pair = PAIRS[kind](1.0, rate)
    left, right = 10.0**low, 10.0 ** (low + width)
    ends = [k(pair, order, left), k(pair, order, right)]
    for share in (0.25, 0.5, 0.75):
        chord = (1.0 - share) * ends[0] + share * ends[1]
        assert k(pair, order, (1.0 - share) * left + share * right) <= chord * (1.0 + 1e-11)


@pytest.mark.slow  # the ground truth of each row, in mpmath
@settings(max_examples=200)
@given(kind=st.sampled_from(sorted(PAIRS)), rate=rates, order=orders, log_s=st.floats(-9.0, 0.5))
def test_the_tail_bounds_every_smaller_moment_and_is_exact_in_the_limit(kind, rate, order, log_s):
    pair, a, x = PAIRS[kind](1.0, rate), np.array([order]), log_s / math.log10(2.0)
    bound = pair.log_tail(a, x)[0] + 2.0 * math.log(2.0) * x
    moment = pair.log_moments(a, x)[0]
    assert moment <= bound + 1e-9 * (1.0 + abs(bound))
    least = pair.least(a)[0]
    assert pair.log_moments(a, least)[0] >= pair.log_tail(a, least)[0] + 2.0 * math.log(2.0) * least - 1e-7


def excess(p, q, ratio):
    s = 1.0 - q + q * ratio
    return s**p - 1.0 - p * (s - 1.0)


def gaussian_moment(p, q, v):
    """E[(1 - q + q r)^p] - 1 by the density of x = log r, analytic in v = mu^2; trapezoidal rule."""
    spread = math.sqrt(abs(v) ** 2 / v.real)
    x = np.linspace(-12.0 * spread - abs(v), 12.0 * spread + 2.0 * (p + 1.0) * abs(v), 20_001)
    density = np.exp(-((x + v / 2.0) ** 2) / (2.0 * v)) / np.sqrt(2.0 * np.pi * v)
    return (density * excess(p, q, np.exp(x))).sum() * (x[1] - x[0])


def laplace_moment(p, q, shift):
    """The same for Laplace noise, by the integral over its profile along the ray to `shift`."""
    u, w = np.polynomial.legendre.leggauss(60)
    u, w = 0.5 * (1.0 + u), 0.5 * w
    t = shift * u
    up, down = 1.0 - q + q * np.exp(t), 1.0 - q + q * np.exp(-t)
    rises = p * (p - 1.0) * q**2 * (np.exp(t) * up ** (p - 2.0) + np.exp(-2.0 * t) * down ** (p - 2.0))
    return (w * (1.0 - np.exp((t - shift) / 2.0)) * rises).sum() * shift


MOMENTS = {"gaussian": gaussian_moment, "laplace": laplace_moment}


@pytest.mark.slow_after(2)  # the ground truth of each row, in mpmath
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(("p", "q"), [(1.3, 0.4), (2.0, 0.05), (3.7, 0.1), (12.5, 0.02), (6.0, 1.0)])
def test_the_bounds_in_the_complex_plane(kind, p, q):
    pair, a, e, moment = PAIRS[kind](1.0, q), np.array([p]), PAIRS[kind](1.0, q).exponent, MOMENTS[kind]
    middle = math.log2(0.49) / e
    assert math.log(moment(p, q, complex(0.49)).real) == pytest.approx(pair.log_moments(a, middle)[0], abs=1e-9)
    for wide, angle in ((0.1, 0.3), (0.5, 0.1), (0.3, 0.6), (0.02, 0.01)):
        near = pair.around(middle, wide, angle)
        largest = pair.log_largest(a, middle - wide, near.top)[0]
        for along in (-1.0, -0.3, 0.0, 0.6, 1.0):
            for across in (0.0, 0.5, 1.0):
                t = 2.0 ** (middle + along * wide) * np.exp(1j * across * angle)
                log_size = math.log(abs(moment(p, q, t**e)))
                assert log_size <= near.log_constant + pair.log_moments(a, near.top)[0]
                assert log_size - 2.0 * math.log(abs(t)) <= near.log_constant + near.log_stretch + largest
                real = abs(t) ** e / math.cos(across * angle * e) ** (e - 1)  # the real shift that stands for t
                assert real <= 2.0 ** (e * near.top) * (1.0 + 1e-12)
                assert real - (t**e).real <= near.aside * (1.0 + 1e-12)


@pytest.mark.parametrize(("kind", "angle"), [("gaussian", 0.7), ("laplace", 1.4)])
def test_no_bound_is_claimed_near_the_imaginary_axis(kind, angle):
    assert PAIRS[kind](1.0, 0.1).around(-1.0, 0.1, angle) is None


def test_no_bound_is_claimed_near_the_zeros_of_the_laplace_ratio():
    assert LaplacePair(10.0, 0.1).around(-0.1, 0.1, 0.3) is None


@pytest.mark.slow_after(1)  # the ground truth of each row, in mpmath
@pytest.mark.parametrize("kind", PAIRS)
def test_the_condition_number_bounds_the_guard_of_every_moment(kind, monkeypatch):
    """With a coarse unit in the last place the guard, four times (8 + condition number) units, can be read off."""
    rng, unit = np.random.default_rng(0), 2.0**-20
    for _ in range(300):
        q = 10.0 ** rng.uniform(-8.0, 0.0) if rng.uniform() < 0.7 else rng.uniform(0.5, 0.999)
        pair, a, x = PAIRS[kind](1.0, q), 1.0 + 10.0 ** rng.uniform(-3.0, 4.0, 1), rng.uniform(-20.0, 2.0)
        monkeypatch.setattr(renyi, "ULP", 0.0)
        exact = pair.log_moments(a, x)[0]
        monkeypatch.setattr(renyi, "ULP", unit)
        assert pair.log_moments(a, x)[0] - exact <= 4.0 * unit * (16.0 + pair.condition(a, x)[0])
