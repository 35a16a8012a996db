from fractions import Fraction

import numpy as np
import pytest

from ledgerwood.verification.errata.outputs import gain, score, softmax


def exact(total, count, lam):
    return Fraction(total) ** 2 / (count + lam) if count else Fraction(0)


def test_the_gain_in_fractions():
    gradients, right = np.array([1.0, -0.5, 0.25, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    assert gain(gradients, right, 0.5) == float(exact(2, 2, Fraction(1, 2)) + exact(Fraction(-1, 4), 2, Fraction(1, 2)))
    assert score(np.zeros(0), 0.0) == 0.0


@pytest.mark.parametrize("lam", [Fraction(0), Fraction(1, 10), Fraction(1), Fraction(10)])
def test_one_more_row_changes_the_gain_within_minus_3_and_1(lam):
    # (S + g)^2 / (m + 1) - S^2 / m, m = n + lambda, |S| <= n: the extremes over a grid of S / n and g, in fractions.
    grid = [Fraction(k, 8) for k in range(-8, 9)]
    found = [
        exact(r * n + g, n + 1, lam) - exact(r * n, n, lam) for n in (0, 1, 2, 5, 40, 1000) for r in grid for g in grid
    ]
    assert min(found) > -3
    assert max(found) <= 1
    assert min(found) < Fraction(-29, 10)


def test_softmax():
    assert softmax(np.array([0.0, np.log(3.0), -np.inf])) == pytest.approx([0.25, 0.75, 0.0])
    assert softmax(np.array([1e6, 0.0])).tolist() == [1.0, 0.0]
