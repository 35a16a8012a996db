import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.verification.errata.dpxgboost.exponential_scale import ExponentialScale


@pytest.mark.parametrize("others", [1, 20, 200])
@pytest.mark.parametrize("at", [0.0, 1.0, 1.5])
def test_the_loss_by_enumeration(others, at, enumerated):
    specimen = ExponentialScale(others=others)
    delta, pure = enumerated([1, *[-1] * others], [0] * (others + 1), at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-10, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-10)


def test_the_loss_tends_to_twice_the_claim():
    assert ExponentialScale(others=10**5).pure_epsilon() == pytest.approx(2.0, rel=1e-3)


def test_the_librarys_choice_at_this_range_keeps_its_price(enumerated):
    mechanism = ExponentialMechanism(rate=0.5)
    price = lw.price(mechanism.event(UtilityRange(range=2.0), lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.5, 0.9):
        delta, pure = enumerated([0.5, *[-0.5] * 20], [0] * 21, at)
        assert delta <= price.delta(at)
        assert pure <= price.epsilon(0.0) <= 1.0 + 1e-12


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"others": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ExponentialScale(**wrong)
