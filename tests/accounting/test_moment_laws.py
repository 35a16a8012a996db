"""Complex moments against mpmath's integrals."""

import mpmath
import numpy as np
import pytest

from ledgerwood.accounting import (
    Adjacency,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    mgf,
    moment_laws,
)

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def complex_moment(event, rate, power):
    """log E_Q[s^power] by mpmath."""
    with mpmath.workdps(20):
        b = mpmath.mpf(event.noise_multiplier)
        power = mpmath.mpc(power)

        def s(level):
            return mpmath.exp(power * mpmath.log(1 - rate + rate * mpmath.exp(level)))

        if isinstance(event, GaussianEvent):
            whole = mpmath.quad(lambda z: mpmath.npdf(z) * s(z / b - 1 / (2 * b * b)), mpmath.linspace(-14, 24, 10))
        else:
            inner = mpmath.quad(lambda x: mpmath.exp(-x / b) / (2 * b) * s((2 * x - 1) / b), mpmath.linspace(0, 1, 9))
            whole = s(-1 / b) / 2 + mpmath.exp(-1 / b) * s(1 / b) / 2 + inner
        return complex(mpmath.log(whole))


@pytest.mark.parametrize("event", [gaussian(1.0), gaussian(0.5), laplace(0.7)])
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(("rate", "tilt", "imaginary"), [(0.3, 2.5, 7.0), (0.01, 6.0, 3.0), (1.0, 1.5, 4.0)])
def test_complex_moments_are_the_integrals(event, direction, rate, tilt, imaginary):
    drawn = event if rate == 1.0 else PoissonSampled(event, sampling_rate=rate)
    kind = moment_laws.leaves(drawn)
    power = 1 + tilt + 1j * imaginary if direction is Direction.REMOVE else -tilt - 1j * imaginary
    exact = complex_moment(event, rate, power)
    for fine in (False, True):
        law = moment_laws.nodes(kind, 1, direction, tilt, imaginary, fine=fine)
        ratio, log_bound = mgf._ratio(law, np.array([imaginary]))
        assert law.log_moment == pytest.approx(complex_moment(event, rate, complex(power.real)).real, abs=1e-13)
        assert abs(np.exp(law.log_moment + ratio[0]) - np.exp(exact)) < 1e-12 * np.exp(law.log_moment)
        assert np.exp(ratio[0].real) - 1e-14 <= np.exp(log_bound[0]) <= 1.0


def test_small_and_large_logarithms_of_one_plus():
    real, imaginary = np.array([1e-12, -1.0, -0.9, 3.0]), np.array([-1e-9, 1e-3, 0.1, 40.0])
    found = moment_laws.log_one_plus(real, imaginary)
    with mpmath.workdps(40):
        exact = [
            complex(mpmath.log(1 + mpmath.mpc(x, y))) for x, y in zip(real.tolist(), imaginary.tolist(), strict=True)
        ]
    assert np.abs(found - exact).max() <= 1e-14
    assert abs(found[0] - exact[0]) <= 1e-24
