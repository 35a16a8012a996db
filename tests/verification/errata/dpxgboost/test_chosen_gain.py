import math

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.chosen_gain import ChosenGain


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.3, 100.0])
def test_the_loss_by_enumeration(epsilon, at):
    node = 1 / mp.mpf("5.1")
    weights = [mp.exp(epsilon * (g - node) / 6) for g in (9 / mp.mpf("3.1") + 4 / mp.mpf("2.1"), 1 / mp.mpf("3.1"))]
    p = [mp.mpf(0), *(w / mp.fsum(weights) for w in weights)]
    first = mp.exp(epsilon * 8 / mp.mpf("2.1") / 6)
    q = [1 / (1 + first), first / (1 + first), mp.mpf(0)]
    sides = (mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))
    specimen = ChosenGain(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12)
    assert specimen.pure_epsilon() == math.inf


def test_a_choice_that_is_kept_keeps_its_price(enumerated):
    price = lw.price(lw.BoundedRangeEvent(epsilon=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.1, 0.5):
        delta, pure = enumerated([(9 / 3.1 + 4 / 2.1) / 4, 1 / 3.1 / 4], [8 / 2.1 / 4, 0.0], at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ChosenGain(**wrong)
