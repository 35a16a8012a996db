import math

import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.privatree.feature_composition import FeatureComposition


def joint(specimen, count):
    """P(features above 0, label), m counts of `count` with geometric noise and a label of classes (count, 0)."""
    ratio, m = mp.exp(-mp.mpf(specimen.epsilon) / 2), specimen.features
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(y - count) for y in range(1, 3000)]
    above = mp.fsum(law)
    other = mp.exp(-mp.mpf(specimen.epsilon) / 2 * count) / 2
    return [
        mp.binomial(m, k) * above**k * (1 - above) ** (m - k) * label
        for k in range(m + 1)
        for label in (1 - other, other)
    ]


@pytest.mark.parametrize("features", [1, 8, 14])
@pytest.mark.parametrize("at", [0.0, 0.1, 0.4])
def test_the_loss_by_enumeration_of_the_counts(features, at):
    specimen = FeatureComposition(features=features)
    p, q = joint(specimen, 1), joint(specimen, 0)
    sides = [mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-9, abs=1e-14)
    pure = max(abs(mp.log(a / b)) for a, b in zip(p, q, strict=True))
    assert specimen.loss() == pytest.approx(float(pure), rel=1e-9)
    assert specimen.loss() == pytest.approx(features * 0.05 + 0.05, rel=1e-12)


def test_a_count_loses_one_price_whatever_it_shows():
    # Of noise of ratio r and a shift of 1 every output's ratio is r or 1 / r: nothing between, clamped at 0 or not.
    ratio = math.exp(-0.05)
    outputs = np.arange(-50, 50)
    logs = np.log(ratio) * (np.abs(outputs - 1) - np.abs(outputs))
    assert np.unique(np.abs(logs)) == pytest.approx([0.05])


def test_the_librarys_price_of_several_histograms_counts_them():
    one = lw.PureEvent(epsilon=0.05, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Repeated(one, count=15)).epsilon(0.0) == pytest.approx(0.75)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"features": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        FeatureComposition(**wrong)
