import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.verification.errata.dpxgboost.replaced_gain import ReplacedGain


def exponents(rate, count, alike):
    """The first candidate's gain less the others', 4 n / (n + 1 + lambda), on either side."""
    gap = rate * mp.mpf(4) * count / (count + mp.mpf("1.1"))
    return [gap, *[0] * alike], [0, *[gap] * alike]


@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("alike", [1, 20, 500])
@pytest.mark.parametrize("at", [0.0, 1.0, 1.2])
def test_the_loss_by_enumeration(count, alike, at, enumerated):
    specimen = ReplacedGain(count=count, alike=alike)
    delta, pure = enumerated(*exponents(mp.mpf(1) / 6, count, alike), at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_the_loss_tends_to_8_sixths():
    assert ReplacedGain(count=10**5, alike=10**5).pure_epsilon() == pytest.approx(4 / 3, rel=1e-3)


def test_the_librarys_choice_at_the_range_of_8_keeps_its_price(enumerated):
    mechanism = ExponentialMechanism(rate=1 / 8)
    price = lw.price(mechanism.event(UtilityRange(range=8.0), lw.Adjacency.REPLACE_ONE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    for at in (0.0, 0.5, 0.9):
        delta, pure = enumerated(*exponents(mp.mpf(1) / 8, 1000, 20), at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"count": 0}, {"alike": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ReplacedGain(**wrong)
