from fractions import Fraction

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.small_root import SmallRoot


@pytest.mark.parametrize("weight", [1.0, 50.0])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_the_loss_by_quadrature(weight, fraction, laplace_delta):
    specimen, scale = SmallRoot(min_child_weight=weight, epsilon=0.1), 2 / (weight + 1.1) / 0.1
    at = fraction / 1.1 / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((1 / 1.1, scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(1 / 1.1 / scale, rel=1e-12)


@pytest.mark.parametrize("least", [1, 20, 50])
@pytest.mark.parametrize("lam", [Fraction(0), Fraction(1, 10), Fraction(3)])
def test_equation_7_holds_where_both_leaves_have_the_least_number_of_rows(least, lam):
    changes = [(2 * n + lam) / ((n + lam) * (n + 1 + lam)) for n in range(least, 10 * least + 1)]
    assert max(changes) <= Fraction(2) / (least + 1 + lam)


def test_the_librarys_price_of_the_sensitivity_of_any_leaf_keeps_the_claim():
    # 1 / (1 + lambda) whatever the number of rows: at the specimen's noise the price is what the specimen loses.
    specimen = SmallRoot()
    noise = 2 / 51.1 / specimen.epsilon / (1 / 1.1)
    price = lw.price(lw.LaplaceEvent(noise_multiplier=noise, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(specimen.pure_epsilon(), rel=1e-12)
    for at in (0.0, 10.0, 23.0):
        assert price.delta(at) >= specimen.delta(at) * (1 - 1e-9)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": -1.0}, {"min_child_weight": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SmallRoot(**wrong)
