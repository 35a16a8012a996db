import math

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.custom_noise import CustomNoise


@pytest.mark.parametrize("scale", [1.0, 5.5, 19.9])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_loss_of_all_trees_together(scale, epsilon, gaussian_delta):
    specimen = CustomNoise(custom_scale=scale)
    stddev = math.sqrt(math.floor(scale)) / 0.5  # of each release, so that floor(scale) of them have mu 0.5
    mu = math.sqrt(sum((1.0 / stddev) ** 2 for _ in range(specimen.trees)))
    assert specimen.delta(epsilon) == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-9)
    assert specimen.claimed_delta(epsilon) == pytest.approx(gaussian_delta(0.5, epsilon), rel=1e-9)


def test_the_library_books_all_trees():
    specimen = CustomNoise()
    release = lw.GaussianEvent(noise_multiplier=math.sqrt(5) / 0.5, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(lw.Repeated(release, count=specimen.trees))
    assert price.delta(1.0) == pytest.approx(specimen.delta(1.0), rel=1e-9)
    assert lw.price(lw.Repeated(release, count=5)).delta(1.0) == pytest.approx(specimen.claimed_delta(1.0), rel=1e-9)


@pytest.mark.parametrize("wrong", [{"custom_scale": 0.5}, {"trees": 5}, {"mu": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        CustomNoise(**wrong)
