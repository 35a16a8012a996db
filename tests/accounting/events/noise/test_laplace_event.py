import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE


def laplace(multiplier: float) -> LaplaceEvent:
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


@pytest.mark.parametrize("multiplier", [1e-3, 0.02, 0.3, 1.0, 30.0, 1e8])
def test_renyi_against_its_integral_formula(multiplier: float) -> None:
    orders = [1 + 1e-7, 1.01, 2.0, 32.5, 8192.0, 1e5]
    values = laplace(multiplier).renyi(orders)
    with mp.workdps(80):
        for order, value in zip(orders, values, strict=True):
            a, b = mp.mpf(order), mp.mpf(multiplier)
            c = 2 * a - 1
            exact = mp.log(a / c * mp.exp((a - 1) / b) + (a - 1) / c * mp.exp(-a / b)) / (a - 1)
            assert (
                0 <= (mp.mpf(float(value)) - exact) / exact < 1e-13
                or float(value) == laplace(multiplier).pure_epsilon()
            )


@pytest.mark.parametrize("multiplier", [0.02, 0.3, 1.0, 30.0, 1e8])
def test_profile_against_the_densities(multiplier: float) -> None:
    """H(eps) = int (p - e^eps q)+ over the line, p and q the two densities: closed form of each piece."""
    limit = 1.0 / multiplier
    for share in (0.0, 1e-9, 0.3, 0.9, 1 - 1e-9):
        epsilon = share * limit
        with mp.workdps(60):
            b, t = mp.mpf(multiplier), mp.mpf(epsilon)
            cut = (1 + b * t) / 2  # p / q > e^eps exactly beyond it
            p_mass = 1 - mp.exp((cut - 1) / b) / 2
            q_mass = mp.exp(-cut / b) / 2
            exact = mp.log(p_mass - mp.exp(t) * q_mass)
            value = mp.mpf(float(laplace(multiplier).log_profile(epsilon, direction=Direction.REMOVE)))
            # 1 - e^{(eps - 1/b)/2} near its zero is as uncertain as 1/b itself
            assert 0 <= value - exact < 1e-13 * (1 + abs(exact)) + mp.mpf(2) ** -51 / (1 - mp.mpf(share))


def test_both_directions_are_alike() -> None:
    grid = np.linspace(0.0, 2.0, 9)
    remove, add = (laplace(0.7).log_profile(grid, direction=d) for d in Direction)
    np.testing.assert_array_equal(remove, add)
    assert add[-1] == -np.inf


def test_pure_epsilon_is_rounded_up() -> None:
    assert laplace(3).pure_epsilon() * 3.0 >= 1.0
    assert laplace(3.0).pure_epsilon() == pytest.approx(1.0 / 3.0, rel=1e-15)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e-200, True])
def test_bad_multipliers_are_refused(value: float) -> None:
    with pytest.raises(InvalidParameter, match="noise_multiplier="):
        laplace(value)
