import math

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.sgbdt.renyi_conversion import RenyiConversion


def test_the_claim_solves_the_printed_equation():
    specimen = RenyiConversion()
    epsilon = specimen.claim.epsilon
    assert math.exp(specimen.divergence - specimen.order * epsilon) == pytest.approx(specimen.target, rel=1e-12)
    assert epsilon < specimen.divergence


def test_the_pair_has_the_stated_divergence(hockey_stick):
    specimen = RenyiConversion(order=5.0, divergence=0.7)
    mu = mp.sqrt(2 * mp.mpf("0.7") / 5)
    moment = mp.quad(lambda z: mp.npdf(z, mu) ** 5 / mp.npdf(z) ** 4, [-30, 0, 5 * mu, 30])
    assert float(mp.log(moment) / 4) == pytest.approx(0.7, rel=1e-12)

    def law(centre):
        return lambda z: -((z - centre) ** 2) / 2 - mp.log(2 * mp.pi) / 2

    assert specimen.delta(0.4) == pytest.approx(hockey_stick(law(mu), law(0), 0.4, [-40, 0, mu, 40]), rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.24, 0.497, 2.0])
def test_the_loss_in_closed_form(epsilon, gaussian_delta):
    assert RenyiConversion().delta(epsilon) == pytest.approx(gaussian_delta(mp.sqrt("0.02"), epsilon), rel=1e-9)


def test_the_rows(gaussian_delta):
    _, epsilon, larger = RenyiConversion().rows()
    root = mp.findroot(lambda e: gaussian_delta(mp.sqrt("0.02"), e) - 1e-5, (0.4, 0.6), solver="anderson", tol=1e-16)
    assert epsilon.exact == pytest.approx(float(root), rel=1e-6)
    printed = (20 - math.log(1e-5)) / 2000
    assert f"epsilon {printed:.4g}," in larger.quantity
    assert larger.exact == pytest.approx(gaussian_delta(mp.sqrt("0.02"), printed), rel=1e-9)


def test_the_printed_rule_tends_to_half_of_mu_squared():
    ends = [RenyiConversion(order=a, divergence=0.01 * a).witness for a in (50.0, 5e3, 5e5)]
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] == pytest.approx(0.01, rel=1e-2)


def test_the_librarys_price_keeps_delta(gaussian_delta):
    specimen = RenyiConversion()
    event = lw.GaussianEvent(noise_multiplier=1 / math.sqrt(0.02), adjacency=lw.Adjacency.ADD_REMOVE)
    for method in ("tightest", "renyi", "gdp"):
        epsilon = lw.price(event, method=method).epsilon(specimen.target)
        assert gaussian_delta(1 / event.noise_multiplier, epsilon) <= specimen.target * (1 + 1e-12)
        assert epsilon > 2 * specimen.claim.epsilon
    # The guarantee alone, without the Gaussian: the refined conversion at that one order.
    alone = lw.price(lw.RenyiEvent(orders=(50.0,), divergences=(0.5,), adjacency=lw.Adjacency.ADD_REMOVE))
    assert alone.epsilon(1e-5) == pytest.approx(0.635, abs=5e-4)


@pytest.mark.parametrize("wrong", [{"order": 1.0}, {"divergence": 0.0}, {"target": 1.0}, {"target": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        RenyiConversion(**wrong)
