import math

import mpmath as mp
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.federated.size_in_delta import SizeInDelta


def test_the_noise_is_the_least_that_the_claim_needs(gaussian_delta):
    specimen = SizeInDelta()
    for rows, n in zip(specimen.pair, (11, 10), strict=True):
        mu = math.sqrt(specimen.trees) / specimen.scale(rows)
        assert gaussian_delta(mu, 1.0) == pytest.approx(1 / n, rel=1e-9)


@pytest.mark.parametrize(("trees", "leaves"), [(1, 1), (5, 3), (200, 15)])
@pytest.mark.parametrize("at", [0.0, 0.05, 1.0])
def test_the_loss_by_quadrature_over_the_radius(trees, leaves, at, hockey_stick):
    specimen = SizeInDelta(trees=trees, leaves=leaves)
    scales = [mp.mpf(specimen.scale(rows)) for rows in specimen.pair]
    k = 2 * trees * leaves

    def log_density(scale):  # of the norm of k normals
        return lambda r: (
            (k - 1) * mp.log(r / scale)
            - (r / scale) ** 2 / 2
            - (mp.mpf(k) / 2 - 1) * mp.log(2)
            - mp.loggamma(mp.mpf(k) / 2)
            - mp.log(scale)
        )

    centre, spread = mp.sqrt(k), 12
    edges = sorted({max(min(scales) * (centre - spread), mp.mpf("1e-9")), max(scales) * (centre + spread)})
    laws = [log_density(scale) for scale in scales]
    found = max(hockey_stick(*laws, at, edges), hockey_stick(*laws[::-1], at, edges))
    assert specimen.delta(at) == pytest.approx(found, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"count": 1}, {"trees": 0}, {"leaves": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SizeInDelta(**wrong)
