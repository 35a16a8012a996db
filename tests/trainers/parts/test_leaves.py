"""Leaf values from released sums."""

import numpy as np
import pytest

from ledgerwood.trainers.parts.leaves import newton_leaves

WEIGHT = np.array([10.0, 0.0, -3.0, 2.0])
GRADIENT = np.array([5.0, 4.0, -4.0, 0.0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("add", [-5 / 12, -2.0, 2.0, 0.0]), ("floor", [-0.5, -2.0, 2.0, 0.0])],
)
def test_a_leaf_is_minus_the_damped_mean_gradient(rule, expected):
    leaves = newton_leaves(WEIGHT, GRADIENT, reg_lambda=2.0, rule=rule)
    np.testing.assert_allclose(leaves, expected, rtol=1e-15)


@pytest.mark.parametrize("rule", ["add", "floor"])
def test_noise_below_zero_rows_cannot_turn_the_sign(rule):
    weight = np.linspace(-1e6, 10, 50)
    assert (newton_leaves(weight, np.ones(50), reg_lambda=0.5, rule=rule) < 0).all()
