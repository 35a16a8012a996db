from fractions import Fraction

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.verification.errata.dpboost.gain_sensitivity import GainSensitivity


def exponents(specimen, rate):
    """rate times the gains of all candidates, with the row and without it, in mpmath."""
    n, lam = mp.mpf(specimen.count), mp.mpf(specimen.regularization)
    alone = n**2 / (n + lam)
    with_row = [(n - 1) ** 2 / (n + 1 + lam)] * specimen.alike + [alone + 1 / (1 + lam)]
    return [rate * g for g in with_row], [rate * alone] * (specimen.alike + 1)


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_loss_by_enumeration(lam, epsilon, enumerated):
    specimen = GainSensitivity(regularization=lam, epsilon=epsilon, alike=30)
    assert specimen.sensitivity() == pytest.approx(1 - lam**2 / ((lam + 1) * (lam + 2)), rel=1e-14)
    both = exponents(specimen, epsilon / (2 * mp.mpf(specimen.sensitivity())))
    for at in (0.0, epsilon, 1.5 * epsilon):
        delta, pure = enumerated(*both, at)
        assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-10)


@pytest.mark.parametrize("lam", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_lemma_1_is_below_the_change_of_one_candidate_in_either_sign(lam):
    lemma, n = (3 * lam + 2) / ((lam + 1) * (lam + 2)), 10_000
    against = abs(Fraction(n - 1) ** 2 / (n + 1 + lam) - Fraction(n) ** 2 / (n + lam))
    along = Fraction(n + 1) ** 2 / (n + 1 + lam) - Fraction(n) ** 2 / (n + lam)
    assert against > Fraction(299, 100) > 3 * lemma * Fraction(99, 100)
    # The proof's own case grows with n; its bound is the value at n = 1.
    assert along == 1 - lam**2 / ((n + lam + 1) * (n + lam))
    assert along > lemma == Fraction(4) / (2 + lam) - 1 / (1 + lam)


def test_the_librarys_choice_at_the_range_of_4_keeps_its_price(enumerated):
    specimen = GainSensitivity()
    mechanism = ExponentialMechanism(rate=specimen.epsilon / 4.0)
    price = lw.price(mechanism.event(UtilityRange(range=4.0), lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(specimen.epsilon, rel=1e-12)
    for at in (0.0, 0.3, 0.6, 0.9):
        delta, pure = enumerated(*exponents(specimen, mp.mpf(mechanism.rate)), at)
        assert delta <= price.delta(at)
        assert pure <= specimen.epsilon < specimen.pure_epsilon()
    assert specimen.delta(0.9) > 10 * price.delta(0.9)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": 0.0}, {"count": 0}, {"alike": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        GainSensitivity(**wrong)
