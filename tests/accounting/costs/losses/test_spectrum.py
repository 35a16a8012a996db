"""The error of transforms, powers and windows against exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from ledgerwood.accounting.costs.losses import saddle
from ledgerwood.accounting.costs.losses.lattice import Law

ULP = 2.0**-52


def inputs(size):
    """Adversarial inputs of sum 1 in absolute value: spikes, alternating signs, a one-sided tilted mass, noise."""
    rng = np.random.default_rng(size)
    spike = np.zeros(size)
    spike[size // 3] = 1.0
    pair = np.zeros(size)
    pair[[1, size - 1]] = 0.5
    alternating = np.where(np.arange(size) % 2 == 0, 1.0, -1.0) / size
    falling = np.exp(-np.arange(size) / (size / 50.0))
    yield from (spike, pair, alternating, falling / falling.sum(), rng.dirichlet(np.ones(size)))


def root(size, places):
    """e^{-2 pi i place / size} in long doubles, from exact turns in [0, 1)."""
    turns = (places % size).astype(np.longdouble) / size
    angle = -2.0 * np.longdouble("3.14159265358979323846264338327950288") * turns
    return np.cos(angle), np.sin(angle)


@pytest.mark.slow_after(6)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("levels", [1, 2, 3, 8, 13, 17, 20])
def test_transforms_err_by_far_less_than_what_is_charged(levels):
    size = 2**levels
    found = [np.fft.rfft(values) for values in inputs(size)]
    for place in {0, 1, size // 4, int(np.random.default_rng(1).integers(0, size // 2 + 1))}:
        real, imaginary = root(size, place * np.arange(size, dtype=np.int64))
        for values, spectrum_values in zip(inputs(size), found, strict=True):
            exact = complex(float((values * real).sum()), float((values * imaginary).sum()))
            assert abs(spectrum_values[place] - exact) <= 2.0 * ULP * levels  # an eighth of what is charged
    for values, spectrum_values in zip(inputs(size), found, strict=True):
        error = np.abs(np.fft.irfft(spectrum_values, size) - values)
        assert error.sum() <= 4.0 * ULP * levels * 2.0 * np.abs(spectrum_values).sum()
        squares = 2.0 * float((np.abs(spectrum_values) ** 2).sum())
        assert error.sum() <= 4.0 * ULP * levels * math.sqrt(squares)
        assert error.max() <= 4.0 * ULP * levels * 2.0 * np.abs(spectrum_values).sum() / size


def test_a_spike_shows_every_root_of_unity():
    """The transform of one mass at 1 is the roots themselves, products of tabulated ones on the way."""
    size = 2**18
    values = np.zeros(size)
    values[1] = 1.0
    real, imaginary = root(size, np.arange(size // 2 + 1))
    assert float(np.abs(np.fft.rfft(values) - (real + 1j * imaginary)).max()) <= 6.0 * ULP


def binary(up, step=0.01, index=1):
    """Randomised response of one lattice step, untilted."""
    mass = np.array([1.0 - up, up])
    return Law(step, 1e-9, np.array([-index, index]), mass, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("count", "up"), [(3, 0.5), (1000, 0.51), (10**6, 0.5001), (1000, 1e-5), (10**6, 1e-6)])
def test_powers_agree_with_the_binomial_law(count, up, above):
    law = binary(up)
    log_outside = math.log(1e-13)
    deviation = 0.02 * math.sqrt(count * up * (1.0 - up))
    first, last = saddle.window([(law, count)], deviation, log_outside)
    first = min(first, last - 4000 if up < 0.01 else first)  # a spectrum that does not fall, many times
    found = saddle.compose([(law, count)], first, last, log_outside, above=above)
    with mp.workdps(30):
        p = mpf(up)
        logs = mp.loggamma(count + 1)
        total = mpf(0)
        middle = round(count * up)
        for ups in range(max(middle - 30, 0), min(middle + 31, count + 1)):
            exact = mp.exp(
                logs - mp.loggamma(ups + 1) - mp.loggamma(count - ups + 1)
                + ups * mp.log(p) + (count - ups) * mp.log(1 - p)
            )  # fmt: skip
            place = 2 * ups - count - int(found.index[0])
            if place < len(found.mass):
                total += abs(mpf(float(found.mass[place])) - exact)
        if up < 0.01:  # all else is next to nothing
            total += float(found.mass.sum()) - sum(
                float(found.mass[2 * k - count - int(found.index[0])])
                for k in range(min(31, count + 1))
                if 2 * k - count - int(found.index[0]) < len(found.mass)
            )
    assert total <= found.error
    if not above or up > 0.01:
        assert found.error <= 1e-11 * max(count, 10)


def test_two_kinds_of_draws_agree_with_an_exact_convolution():
    one, other = binary(0.5), binary(0.25, index=3)
    log_outside = math.log(1e-13)
    parts = [(one, 4), (other, 3)]
    first, last = saddle.window(parts, 0.06, log_outside)
    found = saddle.compose(parts, first, last, log_outside)
    exact = {0: Fraction(1)}
    for law, count in parts:
        for _ in range(count):
            step = {}
            for place, mass in exact.items():
                for index, weight in zip(law.index.tolist(), law.mass.tolist(), strict=True):
                    step[place + index] = step.get(place + index, 0) + mass * Fraction(weight)
            exact = step
    for place, mass in exact.items():
        here = found.mass[place - int(found.index[0])] if first <= place <= last else 0.0
        assert abs(Fraction(float(here)) - mass) <= Fraction(found.error)
    assert found.error <= 1e-11


def test_a_window_holds_what_it_says():
    law, count = binary(0.6), 400
    first, last = saddle.window([(law, count)], 0.2, math.log(1e-6))
    with mp.workdps(30):
        tail = mpf(0)
        for ups in range(count + 1):
            if not first <= 2 * ups - count <= last:
                tail += mp.binomial(count, ups) * mpf(0.6) ** ups * mpf(0.4) ** (count - ups)
    assert tail <= 2e-6


@pytest.mark.parametrize("above", [True, False])
def test_coarser_laws_keep_their_side(above):
    """The profile of the coarser law, and of its error, against that of the fine law, at every fine dot."""
    rng = np.random.default_rng(5)
    index = np.arange(-40, 61)
    mass = rng.dirichlet(np.ones(len(index)))
    fine = Law(0.01, 2.0, index, mass, 0.3, 0.0, 0.0, 0.0, 0.0)
    coarse = saddle.coarsen(fine, 4, above=above)

    def profile(law, t):
        y = law.index * law.step - t
        return float((law.mass * np.exp(law.log_scale - law.tilt * law.index * law.step) * -np.expm1(-y))[y > 0].sum())

    weight = (2.0 / 3.0) ** 2 / 3.0
    for t in np.arange(-0.5, 0.7, 0.0025):
        room = coarse.error * weight * math.exp(coarse.log_scale - 2.0 * t)
        if above:
            assert profile(coarse, t) + room >= profile(fine, t) * (1.0 - 1e-14)
        else:
            assert profile(coarse, t) - room <= profile(fine, t) * (1.0 + 1e-14)
