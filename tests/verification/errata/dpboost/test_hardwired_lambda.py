import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpboost.hardwired_lambda import HardwiredLambda


@pytest.mark.parametrize("lam", [0.0, 0.05])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.04])
def test_the_loss_by_quadrature(lam, at, laplace_delta):
    specimen, scale = HardwiredLambda(regularization=lam), 1 / 1.1
    assert specimen.delta(at) == pytest.approx(laplace_delta((1 / (1 + lam), scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(1.1 / (1 + lam), rel=1e-12)


def test_lambda_of_a_tenth_is_what_the_scale_is_for():
    specimen = HardwiredLambda(regularization=0.1)
    assert specimen.pure_epsilon() == pytest.approx(1.0, rel=1e-12)
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.5, 0.9):
        assert specimen.delta(at) <= price.delta(at) * (1 + 1e-12) < HardwiredLambda().delta(at)


@pytest.mark.parametrize("lam", [0.001, 0.1, 1.0, 10.0])
def test_lemma_2_is_right(lam):
    # (2 n + lambda) / ((n + lambda) (n + 1 + lambda)), the largest change of a leaf of n rows, is largest at n = 0.
    changes = [(2 * n + lam) / ((n + lam) * (n + 1 + lam)) for n in range(2000)]
    assert max(changes) == changes[0] == pytest.approx(1 / (1 + lam), rel=1e-12)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": -0.1}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        HardwiredLambda(**wrong)
