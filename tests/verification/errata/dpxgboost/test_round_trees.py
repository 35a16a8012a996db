import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.round_trees import RoundTrees


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.9])
def test_the_loss_is_that_of_two_leaves(at):
    leaf = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(lw.Composed((leaf, leaf)))
    assert price.epsilon(0.0) == pytest.approx(2.0, rel=1e-12)
    assert RoundTrees().delta(at) <= price.delta(at) * (1 + 1e-12)
    assert RoundTrees().delta(at) == pytest.approx(price.delta(at), rel=1e-3)


def test_ten_classes_are_ten_leaves():
    leaf = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert RoundTrees().rows()[-1].exact == pytest.approx(lw.price(lw.Repeated(leaf, count=10)).epsilon(0.0))


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        RoundTrees(**wrong)
