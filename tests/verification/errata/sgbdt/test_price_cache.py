import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood.accounting import IndividualRenyi
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.price_cache import PriceCache


def mu_of(specimen, gradient, hessian):
    shares = (1 - specimen.hessian_share, specimen.hessian_share)
    stddevs = [
        specimen.sigma * bound / math.sqrt(2 * share)
        for bound, share in zip((specimen.bound, specimen.hessian_bound), shares, strict=True)
    ]
    return math.hypot(min(gradient, specimen.bound) / stddevs[0], min(hessian, specimen.hessian_bound) / stddevs[1])


def cached(rows, price):
    """The code's table: the key is |g| alone, the first row's price stays."""
    table = {}
    return [table.setdefault(g, price(g, h)) for g, h in rows]


def sampled_renyi(mu, rate, order):
    """Mironov, Talwar, Zhang 2019, section 3.3, for whole orders."""
    terms = [
        mp.binomial(order, k)
        * (1 - rate) ** (order - k)
        * mp.mpf(rate) ** k
        * mp.exp((k * k - k) * mp.mpf(mu) ** 2 / 2)
        for k in range(order + 1)
    ]
    return float(mp.log(mp.fsum(terms)) / (order - 1))


def test_what_is_booked_is_the_first_rows_price():
    specimen = PriceCache()
    rows = [(min(abs(g), specimen.bound), h) for _, g, h in specimen.pair[0]]
    assert rows[0][0] == rows[1][0] == specimen.bound
    booked = cached(rows, lambda g, h: sampled_renyi(mu_of(specimen, g, h), specimen.sampling_rate, 16))
    assert booked[0] == booked[1]
    assert specimen.rows()[1].claimed == pytest.approx(booked[1], rel=1e-9)
    exact = sampled_renyi(mu_of(specimen, *rows[1]), specimen.sampling_rate, 16)
    assert specimen.rows()[1].exact == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("share", [0.04, 0.5])
@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_the_loss_in_closed_form(share, rate, epsilon, sampled_gaussian_delta):
    specimen = PriceCache(hessian_share=share, sampling_rate=rate)
    exact = sampled_gaussian_delta(mu_of(specimen, 0.5, 0.25), rate, epsilon)
    assert specimen.delta(epsilon) == pytest.approx(exact, rel=1e-8)
    claimed = sampled_gaussian_delta(mu_of(specimen, 0.99, 0.0099), rate, epsilon)
    assert specimen.claimed_delta(epsilon) == pytest.approx(claimed, rel=1e-8)
    assert exact > claimed


def test_the_library_charges_a_row_by_its_own_norm():
    specimen = PriceCache()
    largest, rate = mu_of(specimen, 0.5, 0.25), specimen.sampling_rate
    event = lw.PoissonSampled(
        lw.GaussianEvent(noise_multiplier=1 / largest, adjacency=lw.Adjacency.ADD_REMOVE), sampling_rate=rate
    )
    norms = [mu_of(specimen, g, h) / largest for g, h in ((0.99, 0.0099), (0.5, 0.25))]
    charged = IndividualRenyi(event, 16.0).at([min(norm, 1.0) for norm in norms])
    for charge, norm in zip(charged, norms, strict=True):
        exact = sampled_renyi(norm * largest, rate, 16)
        assert exact * (1 - 1e-12) <= charge <= exact * (1 + 1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"sigma": 0.0}, {"hessian_bound": 0.3}, {"bound": 0.6}, {"first_gradient": 0.2}, {"sampling_rate": 0.0}],
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        PriceCache(**wrong)


def test_the_log_ratio_is_that_of_the_two_densities():
    specimen = PriceCache()
    stddevs = [
        specimen.sigma * bound / math.sqrt(2 * share)
        for bound, share in ((specimen.bound, 0.5), (specimen.hessian_bound, 0.5))
    ]
    outputs = specimen.sampler(specimen.pair[0], 200, np.random.default_rng(8))
    absent, present = (
        stats.norm.pdf(outputs[:, 1], mean, stddevs).prod(axis=1)
        for mean in ((0.0, 0.0), (-specimen.bound, specimen.hessian_bound))
    )
    rate = specimen.sampling_rate
    assert specimen.log_ratio(outputs) == pytest.approx(np.log((1 - rate) + rate * present / absent), rel=1e-9)
