import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs import renyi


@pytest.mark.parametrize("x", [1e-300, 1e-9, 0.3, 1.0, 1.0001, 50.0, 1e5])
def test_log_expm1(x: float) -> None:
    with mp.workdps(400):
        exact = float(mp.log(mp.expm1(mp.mpf(x))))
    assert float(renyi.log_expm1(np.array([x]))[0]) == pytest.approx(exact, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("x", [-1e-300, -1e-9, -0.3, -0.6931, -0.694, -50.0, -1e5])
def test_log1mexp(x: float) -> None:
    with mp.workdps(400):
        exact = float(mp.log(-mp.expm1(mp.mpf(x)))) if x > -1e4 else 0.0
    assert float(renyi.log1mexp(np.array([x]))[0]) == pytest.approx(exact, rel=4e-15, abs=1e-300)
    assert renyi.log1mexp(np.array([0.0]))[0] == -np.inf


def test_moments_and_divergences_are_inverse() -> None:
    orders = np.array([1 + 1e-6, 1.5, 2.0, 300.0])
    for direction in Direction:
        powers = renyi.powers_of(orders, direction)
        log_excess = renyi.to_log_excess(powers, lambda a, d: 0.3 * a + (0.1 if d is Direction.ADD else 0.0))
        back = renyi.from_log_excess(log_excess, orders)
        np.testing.assert_allclose(back, 0.3 * orders + (0.1 if direction is Direction.ADD else 0.0), rtol=1e-9)


def test_a_divergence_is_never_zero() -> None:
    assert renyi.from_log_excess(np.array([-1e4, -np.inf]), np.array([2.0, 3.0])).min() > 0.0


def test_rounding_is_upward() -> None:
    values = np.array([0.1, 1.0, 1e300])
    assert np.all(renyi.raise_by(values, 0) > values)
    logs = np.array([-1e9, -1.0, 0.0, -np.inf])
    raised = renyi.raise_log(logs, 4)
    assert np.all(raised[:2] > logs[:2])
    assert raised[2] == 0.0
    assert raised[3] == -np.inf
