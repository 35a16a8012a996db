import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.unfiltered_statistics import UnfilteredStatistics


@pytest.mark.parametrize("label", [10.0, 1e5])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.95])
def test_the_loss_by_quadrature(label, fraction, laplace_delta):
    specimen, scale = UnfilteredStatistics(label=label, epsilon=0.1), 2 / 51.1 / 0.1
    with_row, without = min((label - 50) / 101.1, 1.0), -50 / 100.1
    at = fraction * (with_row - without) / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((with_row, scale), (without, scale), at), rel=1e-8)
    assert specimen.pure_epsilon() == pytest.approx((with_row - without) / scale, rel=1e-12)


def test_a_row_that_is_clipped_before_the_sum_keeps_the_claim():
    # One gradient of -1 more among 100 of 1/2 moves the leaf by less than equation 7.
    assert abs((1 - 50) / 101.1 + 50 / 100.1) < 2 / 51.1
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    assert UnfilteredStatistics(label=1.0).pure_epsilon() < 1.0 < UnfilteredStatistics().pure_epsilon()


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": -1.0}, {"min_child_weight": 0}, {"label": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        UnfilteredStatistics(**wrong)
