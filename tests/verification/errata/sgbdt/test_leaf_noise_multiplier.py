import math

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.leaf_noise_multiplier import LeafNoiseMultiplier


@pytest.mark.parametrize("share", [0.04, 0.2, 0.9])
@pytest.mark.parametrize("bound", [0.1, 1.0])
def test_the_loss_from_shifts_and_stddevs(share, bound, gaussian_delta):
    specimen = LeafNoiseMultiplier(sigma=1.5, count_share=share, bound=bound)
    stddevs = (1.5 / math.sqrt(2 * share), bound * 1.5 / math.sqrt(2 * (1 - share)))
    mu = math.hypot(1.0 / stddevs[0], bound / stddevs[1])
    for epsilon in (0.0, 0.5, 3.0):
        assert specimen.delta(epsilon) == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-9)
    assert specimen.rows()[1].exact == pytest.approx(1 / mu)


def test_the_library_prices_this_noise_by_its_stddevs():
    specimen = LeafNoiseMultiplier()
    stddevs = (2.0 / math.sqrt(0.4), 0.1 * 2.0 / math.sqrt(1.6))
    event = lw.EllipticalGaussianEvent(sensitivities=(1.0, 0.1), stddevs=stddevs, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(event)
    for epsilon in (0.1, 1.0, 2.0):
        assert price.delta(epsilon) >= specimen.delta(epsilon) * (1 - 1e-9)
        assert price.delta(epsilon) == pytest.approx(specimen.delta(epsilon), rel=1e-9)
        assert price.delta(epsilon) > specimen.claimed_delta(epsilon)


@pytest.mark.parametrize("wrong", [{"sigma": 0.0}, {"count_share": 0.0}, {"count_share": 1.0}, {"bound": -1.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        LeafNoiseMultiplier(**wrong)
