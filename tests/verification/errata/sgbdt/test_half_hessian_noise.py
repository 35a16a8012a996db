import math

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.half_hessian_noise import HalfHessianNoise


@pytest.mark.parametrize("share", [0.04, 0.1, 0.5])
@pytest.mark.parametrize("bounds", [(0.3, 0.1), (0.5, 0.25)])
def test_the_loss_from_shifts_and_stddevs(share, bounds, gaussian_delta):
    specimen = HalfHessianNoise(sigma=3.0, hessian_share=share, gradient_bound=bounds[0], hessian_bound=bounds[1])
    gradient = 3.0 * bounds[0] / math.sqrt(2 * (1 - share))
    hessian = 0.5 * 3.0 * bounds[1] / math.sqrt(2 * share)
    ((g, h),) = specimen.pair[0]
    mu = math.hypot(min(abs(g), bounds[0]) / gradient, min(h, bounds[1]) / hessian)
    for epsilon in (0.0, 0.5, 3.0):
        assert specimen.delta(epsilon) == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-9)
    # What the code's accountant charges, alpha / sigma^2, is too small by the factor of the page.
    assert specimen.claim.renyi([2.0])[0] == pytest.approx(2.0 / 9.0, rel=1e-12)
    assert 2.0 * mu**2 / 2 / (2.0 / 9.0) == pytest.approx(1 - share + 4 * share)


def test_the_row_is_one_of_the_logistic_loss():
    ((g, h),) = HalfHessianNoise().pair[0]
    assert h == abs(g) * (1 - abs(g))


def test_the_rows_are_the_factors():
    assert [row.exact for row in HalfHessianNoise().rows()[1:]] == pytest.approx([1.12, 1.3, 2.5])


def test_the_library_prices_the_halved_noise_for_what_it_is():
    # With the same two noises the library says the exact loss; with the full one the claim holds.
    share, bounds = 0.1, (0.5, 0.25)
    specimen = HalfHessianNoise()
    stddevs = [4.0 * bounds[0] / math.sqrt(2 * (1 - share)), 4.0 * bounds[1] / math.sqrt(2 * share)]
    for half, expected in ((0.5, specimen.delta), (1.0, specimen.claimed_delta)):
        event = lw.EllipticalGaussianEvent(
            sensitivities=bounds, stddevs=(stddevs[0], half * stddevs[1]), adjacency=lw.Adjacency.ADD_REMOVE
        )
        assert lw.price(event).delta(1.0) == pytest.approx(expected(1.0), rel=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"sigma": 0.0}, {"hessian_share": 1.0}, {"gradient_bound": 0.6}, {"hessian_bound": 0.3}]
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        HalfHessianNoise(**wrong)
