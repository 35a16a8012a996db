import itertools

import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpboost.geometric_index import GeometricIndex


@pytest.mark.parametrize("tree", [51, 55, 101])
@pytest.mark.parametrize("fraction", [0.0, 0.4, 0.9])
def test_the_loss_by_quadrature(tree, fraction, laplace_delta):
    specimen = GeometricIndex(epsilon=0.02 * 0.9 ** (tree - 51), tree=tree)
    scale = 2 * 0.9 ** (tree - 1) / specimen.epsilon
    value = min(1 / 1.1, 0.9 ** ((tree - 1) % 50))
    at = fraction * value / scale
    assert specimen.delta(at) == pytest.approx(laplace_delta((value, scale), (0.0, scale), at), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(value / scale, rel=1e-12)


def leaf(total, count, bound):
    value = -total / (count + 0.1) if count else 0.0
    return min(max(value, -bound), bound)


@pytest.mark.parametrize("place", [1, 5, 8, 9, 20, 50])
def test_the_place_inside_the_ensemble_is_the_right_index(place):
    # All leaves of at most 12 rows with gradients of -1, 0 and 1, and one row more.
    bound = 0.9 ** (place - 1)
    most = max(
        abs(leaf(total + g, count + 1, bound) - leaf(total, count, bound))
        for count, g in itertools.product(range(13), (-1, 0, 1))
        for total in range(-count, count + 1)
    )
    assert most <= min(1 / 1.1, 2 * bound) * (1 + 1e-12)


def test_the_librarys_price_of_the_right_scale_keeps_the_claim(laplace_delta):
    # The first tree of any ensemble: scale 1 / (1 + lambda) / epsilon.
    price = lw.price(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    assert price.epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    for at in (0.0, 0.5, 0.9):
        assert laplace_delta((1 / 1.1, 1 / 1.1), (0.0, 1 / 1.1), at) <= price.delta(at) * (1 + 1e-9)
    assert GeometricIndex(tree=1).pure_epsilon() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"learning_rate": 1.0}, {"regularization": -1.0}, {"tree": 0}, {"ensemble": 0}]
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        GeometricIndex(**wrong)
