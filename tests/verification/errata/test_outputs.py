import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood.verification.errata.outputs import twice


def single(shift, t):
    """The profile of a Laplace pair of `shift` scales at any real t."""
    if t <= -shift:
        return 1 - mp.exp(t)
    return 1 - mp.exp((t - shift) / 2) if t < shift else mp.mpf(0)


@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 1.5, 1.99, 2.0, 5.0])
def test_two_laplace_pairs_by_quadrature_over_the_first_output(shift, fraction):
    # E over x of the first pair's P of H(epsilon - loss(x)), P centred at the shift, Q at 0.
    epsilon = fraction * shift
    edges = sorted({-40.0, 0.0, shift, 40.0 + shift, min(max(epsilon / 2, 0.0), shift)})

    def term(x):
        return mp.exp(-abs(x - shift)) / 2 * single(shift, epsilon - (abs(x) - abs(x - shift)))

    assert twice(shift, epsilon) == pytest.approx(float(mp.quad(term, edges)), rel=1e-10, abs=1e-14)


def test_no_loss_beyond_the_sum_and_total_variation_at_0():
    assert twice(1.0, 2.0) == twice(1.0, 3.0) == 0.0
    assert twice(1.0, 0.0) == pytest.approx(1 - 1.5 / math.e)
    assert (np.diff([twice(2.0, e) for e in np.linspace(0, 4, 50)]) < 0).all()
