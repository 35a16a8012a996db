import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.newton_gain import NewtonGain


def gains(count):
    """Of both candidates with the row: it joins its like, or its opposite."""
    g, h, lam = mp.mpf("0.99"), mp.mpf("0.99") * mp.mpf("0.01"), mp.mpf("0.1")
    alone = (count * g) ** 2 / (count * h + lam)
    return [((count + sign) * g) ** 2 / ((count + 1) * h + lam) + alone for sign in (1, -1)]


@pytest.mark.parametrize("count", [102, 200, 5000])
@pytest.mark.parametrize("at", [0.0, 0.05, 1.0])
def test_the_loss_by_enumeration(count, at, enumerated):
    specimen = NewtonGain(count=count)
    delta, pure = enumerated([g * specimen.epsilon / 6 for g in gains(count)], [0, 0], at)
    assert specimen.delta(at) == pytest.approx(delta, rel=1e-9, abs=1e-14)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_the_change_of_the_gain_is_no_constant():
    changes = [gains(count)[0] - gains(count)[1] for count in (200, 2000)]
    assert changes[0] > 100 * 3
    # For gradients of 1 - t with hessians t (1 - t) it is about 4 / t: without a bound as t falls.
    for t in (1e-2, 1e-4, 1e-6):
        count = 100 / t
        heavy = ((count + 1) ** 2 - (count - 1) ** 2) * (1 - t) ** 2 / ((count + 1) * t * (1 - t) + 0.1)
        assert heavy > 3.5 / t


def test_unit_hessians_keep_the_librarys_price(enumerated):
    # The same rows with the hessian of squared loss, at the range of 4.
    price = lw.price(lw.BoundedRangeEvent(epsilon=0.05, adjacency=lw.Adjacency.ADD_REMOVE))
    with_row = [(198 + sign * 0.99) ** 2 / 201.1 * 0.05 / 4 for sign in (1, -1)]
    for at in (0.0, 0.02, 0.04):
        delta, pure = enumerated(with_row, [0, 0], at)
        assert delta <= price.delta(at)
        assert pure <= 0.05


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"count": 101}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        NewtonGain(**wrong)
