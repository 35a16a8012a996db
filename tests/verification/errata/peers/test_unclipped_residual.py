import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.peers.unclipped_residual import UnclippedResidual


def normal(x, mean, sigma):
    return np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.5, 2.0])
def test_the_loss_on_a_grid_of_both_outputs(sigma, at):
    # A plain sum of (p - e^eps q)_+ over the plane; no profile of either round.
    first = np.linspace(-9 * sigma - 1, 9 * sigma + 2, 1501)[:, None]
    second = np.linspace(-20 * sigma - 2, 20 * sigma + 2, 2501)[None, :]
    cell = (first[1, 0] - first[0, 0]) * (second[0, 1] - second[0, 0])
    p = normal(first, 1.0, sigma) * normal(second, 1.0 - first, sigma)
    q = normal(first, 0.0, sigma) * normal(second, 0.0, sigma)
    sides = [np.maximum(x - np.exp(at) * y, 0.0).sum() * cell for x, y in ((p, q), (q, p))]
    assert UnclippedResidual(noise_multiplier=sigma).delta(at) == pytest.approx(max(sides), abs=2e-5)


def test_a_clipped_residual_keeps_the_claim():
    # |residual| <= 1 in both rounds: shifts of at most 1 each, as claimed.
    sigma, at = 2.0, 1.0
    first = np.linspace(-19, 20, 1501)[:, None]
    second = np.linspace(-22, 22, 1501)[None, :]
    cell = (first[1, 0] - first[0, 0]) * (second[0, 1] - second[0, 0])
    p = normal(first, 1.0, sigma) * normal(second, np.clip(1.0 - first, -1.0, 1.0), sigma)
    q = normal(first, 0.0, sigma) * normal(second, 0.0, sigma)
    specimen = UnclippedResidual()
    for x, y in ((p, q), (q, p)):
        assert np.maximum(x - np.exp(at) * y, 0.0).sum() * cell <= specimen.claimed_delta(at) + 1e-6
    assert specimen.delta(at) > 4 * specimen.claimed_delta(at)


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        UnclippedResidual(noise_multiplier=0.0)
