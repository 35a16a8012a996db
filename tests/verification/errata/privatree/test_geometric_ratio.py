import math

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.privatree.geometric_ratio import GeometricRatio


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("at", [0.0, 0.1, 2.0, 5.0])
def test_the_loss_by_enumeration(epsilon, at):
    ratio = mp.mpf(epsilon)
    p, q = ([(1 - ratio) / (1 + ratio) * ratio ** abs(y - count) for y in range(-80, 82)] for count in (1, 0))
    assert mp.fsum(q) == pytest.approx(1.0)
    sides = [mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    specimen = GeometricRatio(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12, abs=1e-20)
    assert specimen.delta(-math.log(epsilon) + 1e-9) == 0.0


def test_less_epsilon_is_less_noise():
    assert GeometricRatio(epsilon=0.01).delta(0.5) > GeometricRatio(epsilon=0.1).delta(0.5)


def test_the_meant_law_keeps_its_price():
    event = lw.DiscreteLaplaceEvent(scale=10.0, sensitivity=1, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(event).epsilon(0.0) == pytest.approx(0.1)


@pytest.mark.parametrize("wrong", [0.0, 1.0])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match="epsilon"):
        GeometricRatio(epsilon=wrong)
