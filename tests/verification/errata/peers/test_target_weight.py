import math

import mpmath as mp
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.peers.target_weight import TargetWeight


@pytest.mark.parametrize("at", [0.0, 1.0, 100.0])
def test_the_loss_by_quadrature(at):
    # Weights above each target and the mass of no cut; q, of n rows, shows what p never does.
    low, high = mp.mpf(20), mp.mpf(641) / 32
    inside = mp.quad(lambda x: mp.npdf(x, 0, 32.5), [low, high])
    merged = mp.ncdf(high / 32.5), mp.ncdf(low / 32.5)
    sides = inside + max(merged[1] - mp.exp(at) * merged[0], 0), max(merged[0] - mp.exp(at) * merged[1], 0)
    assert TargetWeight().delta(at) == pytest.approx(float(max(sides)), rel=1e-9)


def test_the_noise_is_that_of_the_library(gaussian_delta):
    # One feature: sigma = 1 / mu, mu for a tenth of epsilon 1 and half of delta 1e-5.
    assert gaussian_delta(1 / 32.5, 0.1) < 5e-6 < gaussian_delta(1 / 32.4, 0.1)
    assert math.isclose(TargetWeight().claimed_delta(0.1), 5e-6)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"max_bins": 0}, {"stddev": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        TargetWeight(**wrong)
