import bisect
import math

import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.approximate_prices import ApproximatePrices


def mu_of(specimen, gradient, hessian):
    share = specimen.hessian_share
    stddevs = [specimen.sigma * specimen.bound / math.sqrt(2 * (1 - share))]
    stddevs.append(specimen.sigma * specimen.hessian_bound / math.sqrt(2 * share))
    return math.hypot(gradient / stddevs[0], hessian / stddevs[1])


@pytest.mark.parametrize("gradient", [0.01, 0.05, 0.3333, 0.4999])
def test_the_charge_is_that_of_the_next_pair_in_the_order_of_pairs(gradient):
    specimen = ApproximatePrices(gradient=gradient, steps=40)
    steps = range(1, 41)
    table = sorted((i / 40 * specimen.bound, j / 40 * specimen.hessian_bound) for i in steps for j in steps)
    found = table[bisect.bisect_right(table, (gradient, gradient * (1 - gradient)))]
    assert 1 / specimen.claim.noise_multiplier == pytest.approx(mu_of(specimen, *found), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
def test_the_loss_from_shifts_and_stddevs(epsilon, gaussian_delta):
    specimen = ApproximatePrices()
    mu = mu_of(specimen, 0.3333, 0.3333 * 0.6667)
    assert specimen.delta(epsilon) == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-9)
    assert specimen.rows()[1].exact == pytest.approx(mu**2, rel=1e-12)  # order 2: 2 mu^2 / 2
    # The next gradient with the hessian that it should have had would have been enough.
    assert mu < mu_of(specimen, 0.3335, 0.25)


@pytest.mark.parametrize(
    "wrong", [{"sigma": 0.0}, {"gradient": 0.5}, {"bound": 0.7}, {"hessian_bound": 0.5}, {"steps": 1}]
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ApproximatePrices(**wrong)
